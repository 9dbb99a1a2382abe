import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';

/** `perdure doctor`: whether everything that sessions need is there. */
export function doctor(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .description('check what sessions need, and say what to do about what is missing')
    .action(async () => {
      const { terminal } = cli;
      const { examine } = await import('../examine.ts');
      const checks = await terminal.wait('looking', () => examine(cli));
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
