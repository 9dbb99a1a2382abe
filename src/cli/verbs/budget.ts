import type { Command } from 'commander';
import { invalid } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { Cli } from '../cli.ts';
import { type BudgetOptions, limitsOf, withBudget } from '../input.ts';
import { clean } from '../terminal.ts';

interface Options extends BudgetOptions {
  finish?: true;
  by?: string;
}

/** `perdure budget`: what a session has spent, and its caps. */
export function budget(program: Command, cli: Cli): void {
  withBudget(
    program
      .command('budget')
      .summary('show or set the budget of a session')
      .description(
        'Show what a session has spent, or set its caps. A session that waits for its budget continues.',
      )
      .argument('<session>', 'id of the session'),
  )
    .option('--finish', 'ask for a final summary, and raise the caps by what it can cost at most')
    .option('--by <name>', 'who sets them (default: $USER)')
    .action(async (sessionId: string, options: Options) => {
      const { terminal } = cli;
      const limits = limitsOf(options);
      const sets = limits !== undefined || options.finish === true;
      if (options.by !== undefined && !sets) throw invalid('--by', 'needs a cap or --finish');
      const session = await cli.session(sessionId);
      if (sets) {
        await terminal.wait('setting', () =>
          session.setBudget({
            by: cli.actor(options.by),
            ...defined({ limits }),
            ...(options.finish ? { finish: true } : {}),
          }),
        );
      }
      const { budgetLines } = await import('../render.ts');
      const view = await terminal.wait(`reading ${sessionId}`, () => session.budget());
      terminal.result({ sessionId, ...view }, () => `${clean(sessionId)}\n${budgetLines(view)}`);
    });
}
