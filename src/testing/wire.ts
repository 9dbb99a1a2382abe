/** A wire to a server that a test can hold or cut: what is sent leaves and never arrives. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { PerdureError } from '../contract/errors.ts';

/** A TCP proxy in front of a server. */
export interface Wire {
  /** `host:port` to use in place of the server's own. */
  readonly address: string;
  /** How a worker connects to Temporal through it: uncompressed, so that a test can read what it sends. */
  readonly connection: { readonly address: string; readonly grpcCompression: { readonly codec: 'none' } };
  /** Connections that {@link cut} has broken, and those that were refused since. */
  readonly broken: number;
  readonly refused: number;
  /**
   * From now on what they send is held here; answers still pass. What is held outlives its sender: the server's end
   * of the connection stays open for it, unless the server closes it.
   */
  hold(): void;
  /** Resolves when the text is in what is held. */
  held(text: string): Promise<void>;
  /** Lets what is held pass, also that of a sender that is gone, and then all that follows. */
  release(): void;
  /** From the request on that has the text in it, what they send arrives, and no answer comes back. */
  loseAnswersFrom(text: string): void;
  /** Breaks all connections and refuses new ones; what is held is lost. */
  cut(): void;
  /** Resolves when so many connections have been refused since the start. */
  refusals(count?: number): Promise<void>;
  /** Takes connections again and loses no more answers; what is held passes, as with {@link release}. */
  mend(): void;
  /** Ends all connections; what is held is lost. */
  close(): Promise<void>;
}

/**
 * Opens a wire to `target` (`host:port`) on a free port of this machine.
 *
 * @throws PerdureError `INVALID_ARGUMENT` when `target` is something else, a URL for one.
 */
export async function openWire(target: string): Promise<Wire> {
  const { host, port } = parseTarget(target);
  const kept: { chunk: Buffer; to: Socket }[] = [];
  const watchers = new Set<() => void>();
  let state: 'open' | 'holding' | 'cut' = 'open';
  let broken = 0;
  let refused = 0;
  let loseFrom: string | null = null;
  /** The open connections: the server's end, and the end to which its answers go. */
  const answers = new Map<Socket, Socket>();
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
      if (!isKept()) return void far.destroySoon();
      // As on a slow network, the request outlives its sender. Once it has arrived, the first word of an answer says
      // that it was served; an end of the connection right behind it could make the server drop it.
      far.unpipe();
      far.on('data', () => void (isKept() || far.destroySoon())).resume();
    });
    near.on('data', (chunk: Buffer) => {
      if (loseFrom !== null && chunk.includes(loseFrom)) {
        for (const [from, to] of answers) from.unpipe(to).resume();
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
    `target: "${target}" is no host:port; of a URL take new URL(url).host`,
  );
}
