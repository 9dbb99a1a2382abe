/** A TCP proxy in front of a server. A test can hold requests, lose answers, and cut connections. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { PerdureError } from '../contract/errors.ts';

/** A TCP proxy in front of a server. */
export interface Wire {
  /** `host:port` to use in place of the server's own. */
  readonly address: string;
  /** Options for a worker that connects to Temporal through it. Uncompressed, so that a test can read what is sent. */
  readonly connection: { readonly address: string; readonly grpcCompression: { readonly codec: 'none' } };
  /** How many connections {@link cut} has broken, and how many were refused since. */
  readonly broken: number;
  readonly refused: number;
  /**
   * Holds what clients send from now on; answers still pass. Held data outlives its sender: the connection to the
   * server stays open for it, unless the server closes it.
   */
  hold(): void;
  /** Resolves when the held data contains the text. */
  held(text: string): Promise<void>;
  /** Forwards the held data, also that of a dead sender, and everything after it. */
  release(): void;
  /**
   * Once a request contains the text, no more answers come back on the connections that are open then. Requests still
   * arrive.
   */
  loseAnswersFrom(text: string): void;
  /** Breaks all connections and refuses new ones. Held data is lost. */
  cut(): void;
  /** Resolves when this many connections have been refused since the start. */
  refusals(count?: number): Promise<void>;
  /**
   * Accepts connections again, and loses no more answers. Connections that lost answers are broken, so that their clients
   * connect anew. Held data is forwarded, as with {@link release}.
   */
  mend(): void;
  /** Ends all connections. Held data is lost. */
  close(): Promise<void>;
}

/**
 * Opens a wire to `target` (`host:port`) on a free port of this machine.
 *
 * @throws PerdureError `INVALID_ARGUMENT` when `target` is anything else, such as a URL.
 */
export async function openWire(target: string): Promise<Wire> {
  const { host, port } = parseTarget(target);
  const kept: { chunk: Buffer; to: Socket }[] = [];
  const watchers = new Set<() => void>();
  let state: 'open' | 'holding' | 'cut' = 'open';
  let broken = 0;
  let refused = 0;
  let loseFrom: string | null = null;
  /** The open connections: to the server, and to the client that gets its answers. */
  const answers = new Map<Socket, Socket>();
  /** The clients' ends of connections that lose their answers. */
  const silent = new Set<Socket>();
  const changed = (): void => {
    for (const watcher of watchers) watcher();
  };
  const when = (condition: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!condition()) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
    });
  const release = (): void => {
    state = 'open';
    for (const { chunk, to } of kept.splice(0)) to.write(chunk);
  };
  const breakAll = (): void => {
    kept.length = 0;
    for (const ends of answers) for (const end of ends) end.destroy();
  };
  const server = createServer((near) => {
    near.on('error', () => {});
    if (state === 'cut') {
      near.destroy();
      refused += 1;
      changed();
      return;
    }
    const far = connect(port, host);
    const isKept = (): boolean => kept.some(({ to }) => to === far);
    answers.set(far, near);
    far.pipe(near);
    far
      .on('error', () => {})
      .on('close', () => {
        answers.delete(far);
        near.destroy();
      });
    near.on('close', () => {
      silent.delete(near);
      if (!isKept()) return void far.destroySoon();
      // As on a slow network, the request outlives its sender. If we closed the connection right behind it, the server
      // could drop it. The first byte of an answer says that it was served.
      far.unpipe();
      far.on('data', () => void (isKept() || far.destroySoon())).resume();
    });
    near.on('data', (chunk: Buffer) => {
      if (loseFrom !== null && chunk.includes(loseFrom)) {
        for (const [from, to] of answers) {
          from.unpipe(to).resume();
          silent.add(to);
        }
      }
      if (state !== 'holding') return void far.write(chunk);
      kept.push({ chunk, to: far });
      changed();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    address,
    connection: { address, grpcCompression: { codec: 'none' } },
    get broken() {
      return broken;
    },
    get refused() {
      return refused;
    },
    hold: () => {
      state = 'holding';
    },
    held: (text) => when(() => Buffer.concat(kept.map(({ chunk }) => chunk)).includes(text)),
    release,
    loseAnswersFrom: (text) => {
      loseFrom = text;
    },
    cut: () => {
      state = 'cut';
      for (const near of answers.values()) if (!near.destroyed) broken += 1;
      breakAll();
    },
    refusals: (count = 1) => when(() => refused >= count),
    mend: () => {
      loseFrom = null;
      release();
      for (const near of silent) near.destroy();
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      breakAll();
      await closed;
    },
  };
}

function parseTarget(target: string): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[(.+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(target) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host !== undefined && port >= 1 && port <= 65_535) return { host, port };
  throw new PerdureError(
    'INVALID_ARGUMENT',
    `target: "${target}" is not host:port; for a URL, pass new URL(url).host`,
  );
}
