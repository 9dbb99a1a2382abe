import { writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { PerdureError } from '../../contract/errors.ts';
import type { ValueStore } from '../../contract/values.ts';
import { openExisting } from '../archives.ts';
import type { Cli } from '../cli.ts';
import { duration } from '../input.ts';

const DAY_MS = 86_400_000;

/** `perdure values`: the stored values of sessions. */
export function values(program: Command, cli: Cli): void {
  const group = program
    .command('values')
    .summary('get stored values, remove those that nobody needs')
    .description(
      'The store of large results and files: PERDURE_VALUES, a directory, a PostgreSQL URL or s3://bucket/prefix. ' +
        'With the dev server of this directory it is .perdure/values.',
    );
  get(group, cli);
  prune(group, cli);
}

function get(group: Command, cli: Cli): void {
  group
    .command('get')
    .description('write a value of a session to standard output, or to a file')
    .argument('<session>', 'id of the session')
    .argument('<digest>', 'digest of the value, as perdure show --json has it')
    .option('--output <file>', 'write it to this file')
    .action(async (id: string, digest: string, { output }: { output?: string }) => {
      await storeOf(cli);
      const { bytes, mediaType } = await (await cli.session(id)).value(digest);
      if (output === undefined) process.stdout.write(bytes);
      else {
        await writeFile(output, bytes);
        const written = { file: output, bytes: bytes.length, mediaType };
        cli.terminal.result(written, () => `wrote ${bytes.length} bytes of ${mediaType} to ${output}`);
      }
    });
}

function prune(group: Command, cli: Cli): void {
  group
    .command('prune')
    .description(
      'Count the values that no session refers to: the server has removed or deleted the sessions, and the archive ' +
        'does not have them. With --remove, remove them.',
    )
    .option('--remove', 'remove them')
    .option('--older-than <time>', 'only values that were stored longer ago (default: 1 day)', duration)
    .option(
      '--archive <archive>',
      'keep the values of the sessions in this archive (default: PERDURE_ARCHIVE)',
    )
    .action(async (options: { remove?: true; olderThan?: number; archive?: string }) => {
      const { terminal } = cli;
      const store = await storeOf(cli);
      const { client } = await cli.connect();
      const { pruneValues } = await import('../../values/index.ts');
      const place = options.archive ?? (process.env['PERDURE_ARCHIVE'] || undefined);
      const archive = place === undefined ? null : await openExisting(cli, place);
      const remove = options.remove === true;
      try {
        const report = await terminal.wait('looking at the values', () =>
          pruneValues(client, store, {
            olderThanMs: options.olderThan ?? DAY_MS,
            remove,
            isKept: async (id) => archive !== null && (await archive.runs(id)).length > 0,
          }),
        );
        terminal.result({ ...report, removed: remove }, () => {
          const lines = Object.entries({
            'sessions refer to': report.referred,
            'other namespaces have': report.foreign,
            'too young to remove': report.young,
            [remove ? 'removed' : 'nobody refers to']: report.unreferred,
          }).map(([what, { values: count, bytes }]) => `${what.padEnd(22)} ${count} values, ${bytes} bytes`);
          const more = !remove && report.unreferred.values > 0;
          return [...lines, ...(more ? ['  next: perdure values prune --remove'] : [])].join('\n');
        });
      } finally {
        await archive?.close();
      }
    });
}

async function storeOf(cli: Cli): Promise<ValueStore> {
  const { values: store } = await cli.connect();
  if (store !== undefined) return store;
  throw new PerdureError(
    'INVALID_ARGUMENT',
    'values: set PERDURE_VALUES to the store of your workers, a directory, a PostgreSQL URL or s3://bucket/prefix',
  );
}
