/** The desk as a process: its options are the first argument. */
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { type DeskOptions, deskServer } from './desk-server.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as DeskOptions;
serveStdio(() => deskServer(options));
