/** Sessions under the rate limit of a provider that enforces it with 429s. */
import { expect, inject, onTestFinished, test } from 'vitest';
import type { Session } from '../../src/index.ts';
import { createHarness, type Harness } from '../../src/testing/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { limited, workerOptions } from '../support/limited-agents.ts';
import { limitedProvider, type Provider } from './support/provider.ts';

const AGENTS = new URL('../support/limited-agents.ts', import.meta.url);
const LIMIT = { tokens: 3_000, windowMs: 3_000 };

interface Stage extends Harness {
  provider: Provider;
  /** Starts sessions of tenants, all at once. */
  begin(...tenants: string[]): Promise<Session[]>;
}

async function openStage(limit: { tokens: number; windowMs: number } = LIMIT): Promise<Stage> {
  const provider = limitedProvider(limit);
  const harness = await createHarness({
    script: provider.script,
    agents: [limited],
    module: AGENTS,
    server: inject('temporal'),
    env: { RATE_TOKENS: String(limit.tokens), RATE_WINDOW: String(limit.windowMs) },
  });
  onTestFinished(() => harness.stop());
  const begin = (...tenants: string[]): Promise<Session[]> =>
    Promise.all(
      tenants.map((tenant) => harness.startSession('limited', { message: tenant, context: { tenant } })),
    );
  return { ...harness, provider, begin };
}

test('sessions wait for the limit without a 429, show it, and all are answered', async () => {
  const stage = await openStage();
  await stage.startWorker(workerOptions);
  const sessions = await stage.begin(...Array<string>(25).fill('a'));
  const shown = await Promise.any(
    sessions.map((session) => stage.until(session, ({ limited: wait }) => wait !== undefined)),
  );
  expect(shown).toMatchObject({
    phase: 'thinking',
    wait: null,
    limited: {
      key: 'scripted',
      message: expect.stringMatching(/^scripted allows 3000 tokens in 3 seconds, and/),
    },
  });
  const views = await Promise.all(sessions.map((session) => stage.until(session, 'idle')));
  expect(stage.provider).toMatchObject({ refused: 0, answered: { length: 25 } });
  for (const { budget, notices, limited: wait } of views) {
    expect(wait).toBeUndefined();
    expect(notices).toEqual([]);
    expect(budget.spent).toMatchObject({ turns: 1, inputTokens: 250, outputTokens: 50, lostReplies: 0 });
  }
  for (const session of sessions.slice(0, 12)) await expectFoldEqualsLive(stage.client, session);
});
