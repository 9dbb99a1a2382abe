import { type Command, Option } from 'commander';
import { invalid, messageOf, PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { Cli } from '../cli.ts';
import { port as portOf } from '../input.ts';
import type { McpServerOptions } from '../mcp/server.ts';
import { callersToken, serveUntilInterrupted } from '../serving.ts';

interface Options {
  allow?: 'decide';
  by?: string;
  host?: string;
  port?: number;
  token?: string;
}

/** `perdure mcp`: sessions as tools of an MCP server. */
export function mcp(program: Command, cli: Cli): void {
  program
    .command('mcp')
    .summary('serve sessions as MCP tools to an assistant')
    .description(
      'Serve sessions as MCP tools over standard input and output, so that an assistant can list, show, start and ' +
        'answer them, until it closes standard input. Needs the package @modelcontextprotocol/server.',
    )
    .addOption(
      new Option('--allow <what>', 'also let the assistant decide about tool calls').choices(['decide']),
    )
    .option('--by <name>', 'who sends and decides (default: "$USER via MCP")')
    .option('--port <number>', 'serve over HTTP on this port instead; 0 picks a free one', portOf)
    .option(
      '--host <name>',
      'with --port: address to listen on; any but 127.0.0.1 lets other machines in (default: 127.0.0.1)',
    )
    .option(
      '--token <text>',
      'with --port: token of callers (default: PERDURE_HTTP_TOKEN, or a new token, which is printed)',
    )
    .addHelpText(
      'after',
      '\nWithout --allow decide the assistant sees what waits for approval, and the\ncommand to give to a person.',
    )
    .action(async ({ allow, by, host, port, token }: Options) => {
      const options: McpServerOptions = {
        sessions: async () => (await cli.connect()).sessions,
        by: by ?? `${cli.actor()} via MCP`,
        decides: allow === 'decide',
      };
      if (port === undefined) {
        // Standard input and output would look like a server that hangs.
        if (host !== undefined) throw invalid('--host', 'needs --port');
        if (token !== undefined) throw invalid('--token', 'needs --port');
        const { serveOverStdio } = await loaded(import('../mcp/stdio.ts'));
        return serveOverStdio(options, cli.untilInterrupted());
      }
      await serveOverHttp(cli, options, { host: host ?? '127.0.0.1', port }, token);
    });
}

async function serveOverHttp(
  cli: Cli,
  options: McpServerOptions,
  address: { host: string; port: number },
  typed: string | undefined,
): Promise<void> {
  const { MCP_PATH, mcpHandler } = await loaded(import('../mcp/http.ts'));
  const { token, shown } = callersToken(typed, 'PERDURE_HTTP_TOKEN');
  await serveUntilInterrupted(cli, [mcpHandler(options, token), address], (origin) => {
    const url = `${origin}${MCP_PATH}`;
    cli.terminal.item({ type: 'ready', url, ...defined({ token: shown }), pid: process.pid }, () =>
      [
        `serving     ${url}`,
        `token       ${shown ?? 'the one that you gave'}`,
        '  next: give both to an MCP client, as its URL and as "Authorization: Bearer <token>"',
      ].join('\n'),
    );
  });
}

async function loaded<T>(module: Promise<T>): Promise<T> {
  try {
    return await module;
  } catch (cause) {
    const install = 'npm install @modelcontextprotocol/server';
    throw new PerdureError(
      'INVALID_DEFINITION',
      `the package @modelcontextprotocol/server could not be loaded: ${messageOf(cause)}. Install it with ${install}`,
      { cause, details: { commands: [install] } },
    );
  }
}
