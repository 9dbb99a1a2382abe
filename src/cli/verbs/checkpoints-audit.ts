import type { Command } from 'commander';
import { ARCHIVE_HELP, archivePlace, openExisting } from '../archives.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';
import { clean, inline } from '../terminal.ts';

/** The most characters of a value. */
const BRIEF = 300;

/** `perdure checkpoints audit`: compares an archive with the history. */
export function audit(group: Command, cli: Cli): void {
  group
    .command('audit')
    .summary('compare an archive with the history')
    .description(
      "Compute a session's checkpoints from its history again, and compare them with the archive's up to the first " +
        'difference. A difference makes the exit code 1.',
    )
    .argument('<session>', 'id of the session')
    .argument('[archive]', ARCHIVE_HELP)
    .action(async (sessionId: string, file: string | undefined) => {
      const { terminal } = cli;
      cli.sessionId = sessionId;
      const { auditSession } = await import('../../archive/index.ts');
      const archive = await openExisting(cli, archivePlace(file));
      try {
        const { client } = await cli.connect();
        const found = await terminal.wait(`auditing ${sessionId}`, () =>
          auditSession(client, archive, sessionId),
        );
        const { equal, pending, runs, difference } = found;
        if (difference !== null) process.exitCode = EXIT.failure;
        terminal.result(found, () => {
          const lines = [`${equal} checkpoints of ${runs} runs are equal; ${pending} are not archived yet`];
          if (difference !== null) {
            const { message, archived, history } = difference;
            lines.push(`the first difference: ${message}`);
            lines.push(`  archive ${inline(archived, BRIEF)}`, `  history ${inline(history, BRIEF)}`);
          }
          return lines.map(clean).join('\n');
        });
      } finally {
        await archive.close();
      }
    });
}
