/** Stories of earlier editions, each at a place that a later one decides otherwise: see `src/session/edition.ts`. */
import { expect } from 'vitest';
import * as z from 'zod';
import {
  agentTool,
  type DefinedAgent,
  defineTool,
  type Session,
  setCurrentVersion,
} from '../../src/index.ts';
import { decide, resolve } from '../support/decide.ts';
import { polled } from '../support/polled.ts';
import { type Stage, until, untilPhase } from '../support/stage.ts';
import { agent, childOf, hold, once, scripted } from '../support/tree.ts';
import type { Story } from './stories.ts';

const inputSchema = z.object({ cents: z.number() });
const pay = { name: 'pay', args: { cents: 100 } };

async function untilStatus(session: Session, kind: string): Promise<void> {
  await polled(
    async () => (await session.calls()).items[0]?.status.kind === kind,
    () => `no call is ${kind}`,
  );
}

/** A payment that two people approve, after an edit, and that is lost after an interrupt: a webhook hears of the first. */
export const interrupted: Story = (() => {
  let release = (): void => {};
  return {
    script: scripted({ story: once([pay]) }),
    agent: (stage: Stage) => {
      const held = new Promise<void>((resolved) => {
        release = resolved;
      });
      const tool = defineTool({
        inputSchema,
        needsApproval: true,
        approval: { people: 2, unverified: true },
        settle: 0,
        execute: async () => {
          await held;
          throw new Error('the connection was lost');
        },
      });
      return agent(stage, 'story', { pay: tool });
    },
    worker: { webhooks: { desk: { url: 'http://127.0.0.1:1', secret: null } } },
    message: 'Pay.',
    act: async (session: Session) => {
      await untilPhase(session, 'approval');
      await decide(session, 'call_1_0', { decision: 'edit', args: { cents: 9_000 } }, { by: 'ada' });
      await polled(
        async () => (await session.approvals())[0]?.needs?.given.length === 1,
        () => 'nobody else has to approve',
      );
      await decide(session, 'call_1_0', { decision: 'approve' }, { by: 'ben' });
      await untilStatus(session, 'running');
      await session.send({ text: 'Stop.', id: 'stop', mode: 'interrupt' });
      release();
      await untilStatus(session, 'unknown');
      await resolve(session, 'call_1_0', { outcome: 'failed', reason: 'never came' }, { by: 'ada' });
      await untilPhase(session, 'idle');
      await session.cancel({ by: 'ada', reason: 'done' });
      await session.result();
    },
  };
})();

/** A call that waits for two people, until a deploy lets it run when nobody has decided in time. */
export const deployed: Story = {
  script: ({ assistantCount, lastUserText }) =>
    assistantCount === 0 ? { toolCalls: [pay] } : { text: `heard ${lastUserText}` },
  agent: (stage) => paying(stage, { people: 2, unverified: true, expires: '6s' }),
  message: 'Pay.',
  act: async (session, stage) => {
    await untilPhase(session, 'approval');
    const next = paying(stage, { onExpiry: 'approve', expires: '6s' });
    const [deployment, buildId] = ['expiring', 'next'];
    await stage.startWorker([next], { deployment: { name: deployment, buildId, behavior: 'AUTO_UPGRADE' } });
    await expect
      .poll(() => setCurrentVersion(stage.client, { deployment, buildId }).then(() => true, String))
      .toBe(true);
    // The first answer may still be one of the other worker.
    for (let n = 0; ; n++) {
      const { manifest } = await session.snapshot();
      if (manifest?.tools['pay']?.approval.onExpiry === 'approve') break;
      await session.send({ text: 'And?', id: `aside-${n}`, mode: 'aside' });
      await until(session, ({ queued }) => queued === 0);
    }
    await untilStatus(session, 'completed');
    await untilPhase(session, 'idle');
    await session.cancel({ by: 'ada', reason: 'done' });
    await session.result();
  },
};

function paying(
  stage: Stage,
  approval: NonNullable<Parameters<typeof defineTool>[0]['approval']>,
): DefinedAgent {
  const tool = defineTool({ inputSchema, needsApproval: true, approval, execute: () => 'paid' });
  return agent(stage, 'story', { pay: tool });
}

/** A call that stops waiting for its global effect, and an undo. */
export const givenUp: Story = {
  script: scripted({ story: once([pay]) }),
  agent: (stage) => {
    const tool = defineTool({
      inputSchema,
      idempotency: { scope: 'global' },
      settle: 0,
      execute: () => {
        throw new Error('the connection was lost');
      },
    });
    return agent(stage, 'story', { pay: tool });
  },
  message: 'Pay.',
  act: async (session) => {
    await polled(
      async () => (await session.approvals()).length === 1,
      () => 'nobody is asked',
    );
    await session.send({ text: 'Stop.', id: 'stop', mode: 'interrupt' });
    await untilStatus(session, 'skipped');
    await untilPhase(session, 'idle');
    await session.cancel({ by: 'ada', reason: 'back', undo: { digest: (await session.undoPlan()).digest } });
    await session.result();
  },
};

/** Three levels of agents. Only the one in the middle has caps. */
export const levels: Story = {
  script: scripted({
    story: once([{ name: 'manage', args: { task: 'Manage.' } }]),
    manager: once([{ name: 'clerk', args: { task: 'Work.' } }]),
    clerk: once([{ name: 'hold', args: {} }]),
  }),
  agent: (stage) => {
    const clerk = agentTool(agent(stage, 'clerk', { hold }));
    const manage = agentTool(agent(stage, 'manager', { clerk }, { budget: { turns: 2 } }));
    return agent(stage, 'story', { manage });
  },
  message: 'Report.',
  act: async (session, stage) => {
    const manager = await childOf(stage, session);
    const clerk = await childOf(stage, manager);
    await untilPhase(clerk, 'approval');
    await session.setBudget({ limits: { toolCalls: 9 }, by: 'ada' });
    await manager.setBudget({ limits: { turns: 3 }, by: 'ada' });
    for (const call of await clerk.approvals()) await clerk.decide(call, { decision: 'approve' });
    await untilPhase(session, 'idle');
    await session.cancel({ by: 'ada', reason: 'done' });
    await session.result();
  },
  also: async (session) => {
    const [manager] = (await session.snapshot()).children ?? [];
    return { 'levels-middle': manager?.sessionId ?? '' };
  },
};

/** A chat that its user stops and somebody else pauses, and that the user's next message resumes. */
export const heldChat: Story = {
  script: ({ lastUserText }) => ({ text: `heard ${lastUserText}` }),
  agent: (stage) => agent(stage, 'story', {}),
  message: 'Hello.',
  act: async (session) => {
    await untilPhase(session, 'idle');
    await session.pause({ by: 'tom', reason: 'Stopped in the chat', now: true });
    await session.pause({ by: 'ada', reason: 'a review' });
    await untilPhase(session, 'paused');
    await session.send({ text: 'And?', id: 'and', mode: 'interrupt' });
    await session.resume({ by: 'tom' });
    await until(session, ({ phase, lastText }) => phase === 'idle' && lastText === 'heard And?');
  },
};

/** A global effect that is lost twice, while a call waits for it. */
export const lostTwice: Story = {
  script: scripted({ story: once([pay]) }),
  agent: (stage) => {
    const tool = defineTool({
      inputSchema,
      idempotency: { scope: 'global', ttl: '1h' },
      settle: 0,
      execute: () => {
        throw new Error('the connection was lost');
      },
    });
    return agent(stage, 'story', { pay: tool });
  },
  message: 'Pay.',
  act: async (session, stage) => {
    await untilPhase(session, 'unknown_effect');
    const effect = stage.sessions.get(await effectOf(session));
    await until(effect, ({ pending }) => pending[0]?.dispatchNo === 1);
    await resolve(effect, 'call_0_0', { outcome: 'absent' }, { by: 'ada' });
    await until(effect, ({ pending }) => pending[0]?.dispatchNo === 2);
    await resolve(effect, 'call_0_0', { outcome: 'landed', output: 'paid' }, { by: 'ada' });
    await untilPhase(session, 'idle');
    await session.send({ text: 'Thanks.', id: 'thanks' });
    await until(session, ({ turn, phase }) => turn === 3 && phase === 'idle');
    await session.cancel({ by: 'ada', reason: 'done' });
    await session.result();
  },
  also: async (session) => ({ 'lost-twice-effect': await effectOf(session) }),
};

async function effectOf(session: Session): Promise<string> {
  const { calls } = await session.snapshot();
  return `effect:${calls[0]?.idempotencyKey}`;
}
