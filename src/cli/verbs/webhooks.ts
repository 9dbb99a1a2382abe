import type { Command } from 'commander';
import { invalid, PerdureError } from '../../contract/errors.ts';
import type { Webhook, WebhookTest } from '../../webhooks/index.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';
import { clean } from '../terminal.ts';

interface Options {
  module?: string;
  secret?: string;
}

/** `perdure webhooks`: whether receivers of notifications work. */
export function webhooks(program: Command, cli: Cli): void {
  program
    .command('webhooks')
    .summary('send a test event to webhooks')
    .description('The receivers of notifications.')
    .command('test')
    .description(
      'Send one signed test event, of the type session.test, to webhooks of the agents module or to addresses. ' +
        'Exits with 1 unless all answer with a 2xx status.',
    )
    .argument(
      '[webhook...]',
      'names in the export webhooks of the module, or addresses (default: all of the module)',
    )
    .option('--module <file>', 'module that exports webhooks (default: agents.ts and the like)')
    .option('--secret <secret>', 'signs requests to addresses (default: PERDURE_WEBHOOK_SECRET, or unsigned)')
    .action(async (named: string[], options: Options) => {
      const { terminal } = cli;
      const { checkWebhooks, testWebhook } = await import('../../webhooks/index.ts');
      const chosen = await webhooksOf(named, options);
      checkWebhooks(chosen);
      const consoleUrl = process.env['PERDURE_CONSOLE_URL'];
      const results = await terminal.wait('sending', () =>
        Promise.all(
          Object.entries(chosen).map(async ([webhook, one]) => ({
            webhook,
            signed: one.secret !== null,
            ...(await testWebhook(one, consoleUrl)),
          })),
        ),
      );
      if (results.some(({ ok }) => !ok)) process.exitCode = EXIT.failure;
      terminal.result({ webhooks: results }, () => results.map(lineOf).join('\n'));
    });
}

function lineOf({
  webhook,
  signed,
  status,
  problem,
}: WebhookTest & { webhook: string; signed: boolean }): string {
  const how = signed ? '' : ' (unsigned)';
  return status === null
    ? `${clean(webhook)}${how}: no answer: ${clean(problem ?? '')}`
    : `${clean(webhook)}${how}: answered ${status}`;
}

/** The webhooks to test, by name or address. @throws PerdureError `INVALID_ARGUMENT` */
async function webhooksOf(
  named: readonly string[],
  { module, secret: typed }: Options,
): Promise<Record<string, Webhook>> {
  const found: Record<string, Webhook> = {};
  const names = named.filter((name) => !/^https?:/.test(name));
  const isModuleRead = names.length > 0 || named.length === 0;
  if (module !== undefined && !isModuleRead) throw invalid('--module', 'needs the name of a webhook');
  // The webhooks of a module have their own secrets.
  if (typed !== undefined && names.length === named.length) throw invalid('--secret', 'needs an address');
  const secret = typed ?? process.env['PERDURE_WEBHOOK_SECRET'];
  for (const url of named) if (!names.includes(url)) found[url] = { url, secret: secret || null };
  if (!isModuleRead) return found;
  const { agentsPath, loadAgents } = await import('../load-agents.ts');
  const path = agentsPath(module);
  const { webhooks: known = {} } = await loadAgents(path, () => undefined);
  if (Object.keys(known).length === 0)
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `module: ${path} exports no webhooks. Name an address, or export webhooks`,
    );
  for (const name of names.length > 0 ? names : Object.keys(known)) {
    const webhook = known[name];
    if (webhook === undefined)
      throw new PerdureError(
        'INVALID_ARGUMENT',
        `webhook: ${name} is none of ${Object.keys(known).join(', ')}, and no address that begins with https://`,
      );
    found[name] = webhook;
  }
  return found;
}
