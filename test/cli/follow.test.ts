/** Following a session through the loss of its worker, from what a session's handle answers then. */
import { expect, test } from 'vitest';
import { type Followed, follow } from '../../src/cli/follow.ts';
import { Terminal } from '../../src/cli/terminal.ts';
import { type Message, PerdureError, type StreamPart } from '../../src/index.ts';

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

test('an answer of which a part was shown is shown whole when it was recorded while no worker answered', async () => {
  const interrupt = new AbortController();
  const answer: Message = {
    id: 'msg_1',
    role: 'assistant',
    created_at: '2026-01-01T00:00:00.000Z',
    blocks: [{ kind: 'text', text: 'the whole answer' }],
  };
  let items: Message[] = [];
  async function* lost(): AsyncGenerator<StreamPart> {
    yield { type: 'text', text: 'the who' };
    items = [answer];
    throw new PerdureError('NO_WORKER', 'No worker answered');
  }
  async function* ends(): AsyncGenerator<StreamPart> {
    interrupt.abort();
    yield { type: 'reset' };
  }
  const streams = [lost, ends];
  const session: Followed = {
    transcript: async () => ({ items, first: 0, total: items.length }),
    stream: () => (streams.shift() ?? ends)(),
    state: () => Promise.reject(new PerdureError('NO_WORKER', 'No worker answered')),
  };
  const screen = new Screen();
  const cli = { terminal: screen, untilInterrupted: () => interrupt.signal };
  expect(await follow(cli, session, { from: 0, once: false })).toBeNull();
  expect(screen.shown).toMatch(/^the who\n\[.*\]the whole answer\n$/);
});
