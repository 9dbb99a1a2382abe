/** The desk as a process: its options are the first argument. */
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { type DeskOptions, deskServer } from './desk-server.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as DeskOptions;
if (options.old === true) await deskServer(options).connect(new StdioServerTransport());
else serveStdio(() => deskServer(options));
