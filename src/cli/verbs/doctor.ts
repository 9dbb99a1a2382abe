import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';

/** `perdure doctor`: whether everything that sessions need is there. */
export function doctor(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .summary('check server, workers and sessions')
    .description(
      'Check all that sessions need, and print what to do about each problem. A problem makes the exit code 1.',
    )
    .action(async () => {
      const { terminal } = cli;
      const { examine } = await import('../examine.ts');
      const checks = await terminal.wait('checking', () => examine(cli));
      const ok = checks.every((check) => check.ok);
      const width = Math.max(...checks.map(({ name }) => name.length));
      terminal.result({ ok, checks }, () =>
        checks
          .map((check) => {
            const mark = check.ok ? terminal.style('green', 'ok     ') : terminal.style('red', 'problem');
            const next = check.next === null ? '' : `\n${' '.repeat(9)}next: ${check.next}`;
            return `${mark}  ${check.name.padEnd(width)}  ${check.detail}${next}`;
          })
          .join('\n'),
      );
      if (!ok) process.exitCode = EXIT.failure;
    });
}
