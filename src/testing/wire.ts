/** A wire to a server that a test can hold or cut: what is sent leaves and never arrives. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy in front of a server. */
export interface Wire {
  /** `host:port` to use in place of the server's own. */
  readonly address: string;
  /** How a worker connects to Temporal through it: uncompressed, so that a test can read what it sends. */
  readonly connection: { readonly address: string; readonly grpcCompression: { readonly codec: 'none' } };
  /** Connections that {@link cut} has broken, and those that were refused since, each a number of sockets. */
  readonly broken: number;
  readonly refused: number;
  /** From now on what they send is held here; answers still pass. */
  hold(): void;
  /** Resolves when the text is in what is held. */
  held(text: string): Promise<void>;
  /** Lets what is held, and all that follows, pass. */
  release(): void;
  /** From the request on that has the text in it, what they send arrives, and no answer comes back. */
  loseAnswersFrom(text: string): void;
  /** Breaks all connections and refuses new ones; what is held is lost. */
  cut(): void;
  /** Resolves when so many connections have been refused since the start. */
  refusals(count?: number): Promise<void>;
  /** Takes connections again. */
  mend(): void;
  /** Ends all connections; what is held is lost. */
  close(): Promise<void>;
}

/** Opens a wire to `target` (`host:port`) on a free port of this machine. */
export async function openWire(target: string): Promise<Wire> {
  const [host = '127.0.0.1', port = '0'] = target.split(':');
  const sockets = new Set<Socket>();
  const kept: { chunk: Buffer; to: Socket }[] = [];
  const watchers = new Set<() => void>();
  let state: 'open' | 'holding' | 'cut' = 'open';
  let broken = 0;
  let refused = 0;
  let loseFrom: string | null = null;
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
  const server = createServer((near) => {
    near.on('error', () => {});
    if (state === 'cut') {
      near.destroy();
      refused += 1;
      changed();
      return;
    }
    const far = connect(Number(port), host);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(socket);
          near.destroy();
          far.destroy();
        });
    }
    far.pipe(near);
    answers.set(far, near);
    far.on('close', () => answers.delete(far));
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
    release: () => {
      state = 'open';
      for (const { chunk, to } of kept.splice(0)) to.write(chunk);
    },
    loseAnswersFrom: (text) => {
      loseFrom = text;
    },
    cut: () => {
      state = 'cut';
      kept.length = 0;
      broken += sockets.size / 2;
      for (const socket of sockets) socket.destroy();
    },
    refusals: (count = 1) => when(() => refused >= count),
    mend: () => {
      state = 'open';
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
