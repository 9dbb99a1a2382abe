/** What a terminal shows of a stream. */
import { expect, test } from 'vitest';
import { type Followed, follow } from '../../src/cli/follow.ts';
import { Terminal } from '../../src/cli/terminal.ts';
import type { StreamPart } from '../../src/index.ts';

/** A terminal that somebody watches. */
class Screen extends Terminal {
  override readonly live = true;
  shown = '';
  override write(text: string): void {
    this.shown += text;
  }
  override progress(text: string): void {
    this.shown += `[${text}]`;
  }
}

test('an answer that is said anew is shown whole, and messages of others are not shown', async () => {
  const interrupt = new AbortController();
  const message = { type: 'message' as const, id: 'm', blocks: [], cursor: 'r:1:1' };
  async function* parts(): AsyncGenerator<StreamPart> {
    yield { ...message, role: 'user', text: 'hello' };
    yield { type: 'text', text: 'the who' };
    yield { type: 'reset' };
    yield { type: 'text', text: 'the whole answer' };
    yield { ...message, role: 'assistant', text: 'the whole answer' };
    interrupt.abort();
  }
  const never = (): Promise<never> => Promise.reject(new Error('not asked'));
  const session: Followed = { transcript: never, stream: parts, state: never, ping: never };
  const screen = new Screen();
  const cli = { terminal: screen, untilInterrupted: () => interrupt.signal };
  expect(await follow(cli, session, { since: 'start', once: false })).toBeNull();
  expect(screen.shown).toBe('the who\n[the model call is repeated]the whole answer\n');
});
