/** A service that answers each request with the moment of its arrival, on the clock that all processes share. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { say } from '../support/processes.ts';

const server = createServer((_, response) => response.end(String(process.hrtime.bigint())));
server.listen(0, '127.0.0.1', () =>
  say({ event: 'listening', port: (server.address() as AddressInfo).port }),
);
