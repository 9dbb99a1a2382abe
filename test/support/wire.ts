/** A wire between a worker and Temporal that a test can cut in one direction: what is sent leaves and never arrives. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy in front of a server. */
export interface Wire {
  /** How a worker connects through it: uncompressed, so that the test can read what it sends. */
  readonly connection: { readonly address: string; readonly grpcCompression: { readonly codec: 'none' } };
  /** From now on what they send is held here; answers still pass. */
  hold(): void;
  /** Resolves when the text is in what is held. */
  held(text: string): Promise<void>;
  /** Lets what is held, and all that follows, pass. */
  release(): void;
  /** Ends all connections; what is held is lost. */
  close(): Promise<void>;
}

/** Opens a wire to `target` (`host:port`). */
export async function openWire(target: string): Promise<Wire> {
  const [host = '127.0.0.1', port = '0'] = target.split(':');
  const sockets = new Set<Socket>();
  const kept: { chunk: Buffer; to: Socket }[] = [];
  const watchers = new Set<() => void>();
  let holding = false;
  const server = createServer((near) => {
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
    near.on('data', (chunk: Buffer) => {
      if (!holding) return void far.write(chunk);
      kept.push({ chunk, to: far });
      for (const watcher of watchers) watcher();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    connection: {
      address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      grpcCompression: { codec: 'none' },
    },
    hold: () => {
      holding = true;
    },
    held: (text) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!Buffer.concat(kept.map(({ chunk }) => chunk)).includes(text)) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        look();
      }),
    release: () => {
      holding = false;
      for (const { chunk, to } of kept.splice(0)) to.write(chunk);
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
