/** Sessions whose histories are stored: each takes another way through the workflow. */
import { expect } from 'vitest';
import * as z from 'zod';
import { SUMMARY_REQUEST } from '../../src/contract/view.ts';
import {
  type DefinedAgent,
  defineAgent,
  defineTool,
  moveSession,
  NotAttemptedError,
  type Session,
  type SessionWorkerOptions,
  type StartOptions,
  setCurrentVersion,
  TemporalSaver,
} from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { decide, resolve } from '../support/decide.ts';
import { type Stage, until, untilPhase } from '../support/stage.ts';
import { deployed, givenUp, heldChat, interrupted, levels, lostTwice } from './edition-stories.ts';
import { background, learned, shared, tree, unpriced } from './shared-stories.ts';

/** A session that is run to its end once, for its history. */
export interface Story {
  script: Script;
  agent: (stage: Stage) => DefinedAgent;
  message: string;
  mode?: 'chat' | 'task';
  start?: Partial<StartOptions>;
  worker?: Partial<SessionWorkerOptions>;
  /** What people do; the history is taken when it resolves. */
  act: (session: Session, stage: Stage) => Promise<void>;
  /** The run whose history is taken, if not the last: its place in the session, from 0. */
  run?: number;
  /** Other workflows whose histories are taken, too: their ids by the names of their files. */
  also?: (session: Session, stage: Stage) => Promise<Record<string, string>>;
}

const id = z.object({ id: z.string() });
const call = (name: string, value: string): { name: string; args: { id: string } } => ({
  name,
  args: { id: value },
});
const base = (stage: Stage): Pick<Parameters<typeof defineAgent>[0], 'name' | 'model' | 'instructions'> => ({
  name: 'story',
  model: { model: stage.provider('m'), price: { inputPerMillion: 1, outputPerMillion: 2 } },
  instructions: 'Do as the story goes.',
});

/** Reads beside each other, an approval that is edited, an equal call, an end in order. */
const refund: Story = {
  script: ({ assistantCount }) => {
    if (assistantCount === 0)
      return { text: 'Looking.', toolCalls: [call('look', 'a'), call('look', 'b'), call('fetch', 'c')] };
    if (assistantCount === 1) return { toolCalls: [call('pay', 'x'), call('note', 'n')] };
    return assistantCount === 2 ? { toolCalls: [call('pay', 'y')] } : { text: 'Refunded.' };
  },
  agent: (stage) =>
    defineAgent({
      ...base(stage),
      budget: { usd: 1 },
      tools: {
        look: defineTool({ inputSchema: id, effect: 'read', execute: (input) => input.id }),
        fetch: defineTool({ inputSchema: id, effect: 'read', execute: (input) => input.id }),
        note: defineTool({ inputSchema: id, effect: 'idempotent', execute: (input) => input.id }),
        pay: defineTool({ inputSchema: id, needsApproval: true, execute: (input) => ({ paid: input.id }) }),
      },
    }),
  message: 'Refund it.',
  act: async (session) => {
    await untilPhase(session, 'approval');
    await decide(session, 'call_2_0', { decision: 'edit', args: { id: 'y' } }, { by: 'ada' });
    await untilPhase(session, 'approval');
    await decide(session, 'call_3_0', { decision: 'approve' }, { by: 'bob' });
    await untilPhase(session, 'idle');
    await session.cancel({ by: 'ada', reason: 'done' });
    await session.result();
  },
};

/** Signals of every kind, good and bad, updates that are refused, a pause in a model call, an interruption, a cap. */
const people: Story = {
  script: async ({ lastUserText, repeat }) => {
    if (lastUserText === 'hang') return { fault: 'hang', afterChunks: 1 };
    return { text: `heard ${lastUserText} ${repeat}` };
  },
  agent: (stage) => defineAgent({ ...base(stage), budget: { turns: 3 } }),
  message: 'one',
  act: async (session, stage) => {
    const handle = stage.client.workflow.getHandle(session.id);
    await untilPhase(session, 'idle');
    await handle.signal('send', { text: '' });
    await handle.signal('nobody');
    await handle.signal('pause', { by: 'ada' });
    await handle.signal('pause');
    await session.send('hang');
    await decide(session, 'call_1_0', { decision: 'approve' }).catch(() => {});
    await session.resume();
    await stage.model.waitFor((requests) => requests.length === 2);
    await session.send({ text: 'two', mode: 'interrupt', id: 'm2' });
    await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
    await session.send('three');
    await until(session, ({ turn, phase }) => turn === 3 && phase === 'idle');
    await session.send('four');
    await untilPhase(session, 'waiting');
    await session.setBudget({ finish: true, by: 'ada' });
    await session.result();
  },
};

/** A model that fails in every way that is repeated, a plan, a loop that a message ends. */
const faults: Story = {
  script: ({ assistantCount, repeat, lastUserText }) => {
    if (assistantCount === 0 && repeat === 0) return { fault: 'garbage' };
    if (assistantCount === 0 && repeat === 1)
      return { fault: 'status', status: 429, headers: { 'retry-after-ms': '10' } };
    if (assistantCount === 0) {
      const step = { id: 's', title: 'Look', postconditions: ['seen'], status: 'done' };
      return {
        toolCalls: [
          { name: 'update_plan', args: { steps: [step] } },
          { name: 'none', args: {} },
        ],
      };
    }
    return lastUserText === 'stop' ? { text: 'stopped' } : { toolCalls: [call('look', 'same')] };
  },
  agent: (stage) =>
    defineAgent({
      ...base(stage),
      plan: true,
      tools: {
        look: defineTool({ inputSchema: id, effect: 'read', execute: (input) => input.id }),
      },
    }),
  message: 'go',
  mode: 'task',
  act: async (session) => {
    await untilPhase(session, 'waiting');
    await session.send('stop');
    await session.result();
  },
};

/** The three outcomes of an effect: certainly not attempted, unknown and verified, unknown and put before a person. */
const effects: Story = {
  script: ({ assistantCount }) => {
    if (assistantCount === 0)
      return { toolCalls: [call('absent', 'a'), call('landed', 'b'), call('unknown', 'c')] };
    return { text: 'settled' };
  },
  agent: (stage) => {
    let attempts = 0;
    const lost = (): never => {
      throw new Error('the connection was lost');
    };
    return defineAgent({
      ...base(stage),
      tools: {
        absent: defineTool({
          inputSchema: id,
          execute: (input) => {
            attempts += 1;
            if (attempts < 2) throw new NotAttemptedError('refused at the door');
            return input.id;
          },
        }),
        landed: defineTool({
          inputSchema: id,
          settle: 10,
          execute: lost,
          verify: (input) => ({ outcome: 'landed', output: input.id }),
        }),
        unknown: defineTool({ inputSchema: id, settle: 0, execute: lost }),
      },
    });
  },
  message: 'go',
  act: async (session) => {
    await untilPhase(session, 'unknown_effect');
    await resolve(session, 'call_1_2', { outcome: 'failed', reason: 'never came' }, { by: 'ada' });
    await untilPhase(session, 'idle');
  },
};

/** Reads of every kind: with the reply after them, before a mutation, lost in a pause, and too large for a reply. */
const reads: Story = {
  script: ({ assistantCount }) => {
    if (assistantCount === 0) return { toolCalls: [call('look', 'a'), call('look', 'b')] };
    if (assistantCount === 1) return { toolCalls: [call('look', 'c'), call('pay', 'x'), call('look', 'd')] };
    if (assistantCount === 2) return { toolCalls: [call('look', 'large'), call('look', 'none')] };
    return assistantCount === 3 ? { toolCalls: [call('look', 'pause')] } : { text: 'Looked.' };
  },
  agent: (stage) =>
    defineAgent({
      ...base(stage),
      heartbeat: '1s',
      budget: { tokens: 1_000_000 },
      tools: {
        look: defineTool({
          inputSchema: id,
          effect: 'read',
          execute: async (input, { attempt, abortSignal }) => {
            if (input.id === 'large') return 'x'.repeat(20_000);
            if (input.id === 'none' && attempt === 1) throw new NotAttemptedError('refused at the door');
            if (input.id !== 'pause' || paused) return input.id;
            paused = true;
            await stage.client.workflow.getHandle('story-reads').signal('pause', { by: 'ada', now: true });
            return new Promise<string>((_resolve, reject) => {
              abortSignal.addEventListener('abort', () => reject(abortSignal.reason as Error));
            });
          },
        }),
        pay: defineTool({ inputSchema: id, execute: (input) => ({ paid: input.id }) }),
      },
    }),
  message: 'Look.',
  act: async (session) => {
    await untilPhase(session, 'paused');
    // The activity has ended, too.
    for (let ready = false; !ready; ) ready = (await session.calls()).items.at(-1)?.status.kind === 'ready';
    await session.resume({ by: 'ada' });
    await untilPhase(session, 'idle');
  },
};
let paused = false;

/** What a rewind has left of a session with a plan: what happened after its checkpoint answers an equal call. */
const rewound: Story = {
  script: ({ assistantCount }) => {
    const step = { id: 's', title: 'Pay', postconditions: ['paid'], status: 'in_progress' };
    if (assistantCount === 0)
      return { toolCalls: [{ name: 'update_plan', args: { steps: [step] } }, call('pay', 'x')] };
    if (assistantCount === 2) return { toolCalls: [call('pay', 'y'), call('announce', 'z')] };
    return assistantCount === 4
      ? { toolCalls: [call('announce', 'thanks')] }
      : { text: `Reply ${assistantCount}.` };
  },
  agent: (stage) =>
    defineAgent({
      ...base(stage),
      plan: true,
      tools: {
        pay: defineTool({ inputSchema: id, execute: (input) => ({ paid: input.id }) }),
        announce: defineTool({
          inputSchema: id,
          idempotency: { scope: 'global', ttl: '1h' },
          execute: (input) => ({ announced: input.id }),
        }),
      },
    }),
  message: 'Pay x.',
  act: async (session, { client, sessions }) => {
    const { turn } = await untilPhase(session, 'idle');
    const [checkpoint] = await new TemporalSaver(client).list(session.id, { limit: 1 });
    await session.send('Pay y, and say so.');
    await until(session, (view) => view.phase === 'idle' && view.turn > turn);
    await sessions.rewind(
      { sessionId: session.id, checkpointId: checkpoint?.id ?? '' },
      { agent: 'story', by: 'ada', reason: 'a mistake', message: 'Pay y once more.' },
    );
    await until(session, (view) => view.phase === 'idle' && view.turn > turn);
    await session.send('Thank you.');
    await until(session, (view) => view.phase === 'idle' && view.turn > turn + 3);
    await session.cancel({ by: 'ada', reason: 'done' });
    await session.result();
  },
};

/** A write that a pause stops after its dispatch, and that a message then passes over. */
const stopped: Story = {
  script: ({ assistantCount }) =>
    assistantCount === 0 ? { toolCalls: [call('note', 'a')] } : { text: `Reply ${assistantCount}.` },
  agent: (stage) =>
    defineAgent({
      ...base(stage),
      heartbeat: '1s',
      tools: {
        note: defineTool({
          inputSchema: id,
          effect: 'idempotent',
          execute: (_, { abortSignal }) =>
            new Promise((_resolve, reject) => {
              abortSignal.addEventListener('abort', () => reject(abortSignal.reason as Error));
              // It is in the worker's hands: what it does from here on nobody is told.
              void stage.client.workflow.getHandle('story-stopped').signal('pause', { by: 'ada', now: true });
            }),
        }),
      },
    }),
  message: 'Note a.',
  act: async (session) => {
    await untilPhase(session, 'paused');
    await session.send({ text: 'Leave it.', mode: 'interrupt', id: 'm2' });
    await session.resume({ by: 'ada' });
    await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
    await session.send('Go on.');
    await until(session, ({ turn, phase }) => turn === 3 && phase === 'idle');
  },
};

/** A chain of reads that is longer than a run: the history of a run that began, and ends, in the middle of a turn. */
const chain: Story = {
  script: ({ assistantCount }) =>
    assistantCount < 8 ? { toolCalls: [call('look', `${assistantCount}`)] } : { text: 'Seen.' },
  agent: (stage) =>
    defineAgent({
      ...base(stage),
      runTurns: 3,
      tools: { look: defineTool({ inputSchema: id, effect: 'read', execute: (input) => input.id }) },
    }),
  message: 'Look.',
  mode: 'task',
  act: async (session) => void (await session.result()),
  run: 1,
};

/** A run that continues another, answers a call from that one's record, and ends when the session goes on in a third. */
const runs: Story = {
  script: ({ assistantCount }) =>
    assistantCount % 2 === 0
      ? { toolCalls: [call('pay', assistantCount === 4 ? 'x0' : `x${assistantCount}`)] }
      : { text: `Reply ${assistantCount}.` },
  agent: (stage) =>
    defineAgent({
      ...base(stage),
      runTurns: 3,
      tools: {
        pay: defineTool({
          inputSchema: id,
          idempotency: { scope: 'session' },
          execute: (input) => ({ paid: input.id }),
        }),
      },
    }),
  message: 'Pay x0.',
  act: async (session) => {
    for (const turn of [2, 4, 6, 8]) {
      await until(session, (view) => view.turn === turn && view.phase === 'idle');
      await session.send({ text: `Go on after ${turn}.`, id: `m${turn}` });
    }
    await until(session, ({ turn, phase }) => turn === 10 && phase === 'idle');
  },
  run: 1,
};

/** Prompts that are compacted: near the window, after a summary that cannot be read, and when the model refuses one. */
const compacted: Story = {
  script: ({ lastUserText, repeat }) => {
    if (lastUserText === SUMMARY_REQUEST)
      return repeat === 0 ? { fault: 'garbage' } : { text: 'They sent pages.' };
    if (lastUserText.startsWith('refused') && repeat === 0)
      return { fault: 'status', status: 400, message: 'prompt is too long' };
    return { text: 'Noted.' };
  },
  agent: (stage) => defineAgent({ ...base(stage), plan: true, contextWindow: { tokens: 1_000 } }),
  message: 'Hello.',
  act: async (session) => {
    for (const [i, word] of ['one', 'two', 'three', 'four', 'five', 'six'].entries()) {
      await until(session, ({ turn, phase }) => turn === i + 1 && phase === 'idle');
      await session.send({ text: word.padEnd(600, ` ${word}`), id: word });
    }
    await until(session, ({ turn, phase }) => turn === 7 && phase === 'idle');
    await session.send({ text: 'refused '.repeat(50), id: 'refused' });
    await untilPhase(session, 'waiting');
    await session.resume({ by: 'ada' });
    await until(session, ({ turn, phase }) => turn === 8 && phase === 'idle');
    const { items } = await session.transcript();
    const from = items.findIndex(({ summary }) => summary !== undefined);
    await session.edit({ transcript: { from, messages: [] }, by: 'ada', reason: 'all over' }).catch(() => {});
    await session.cancel({ by: 'ada', reason: 'done' });
    await session.result();
  },
};

/** A deploy: versions of the workers, a changed agent, and a session that is pinned, woken and unpinned by a move. */
const moved: Story = {
  script: ({ assistantCount, tools }) =>
    tools.length > 0 && assistantCount === 1
      ? { toolCalls: [call('note', 'n')] }
      : { text: `Reply ${assistantCount}.` },
  agent: (stage) => defineAgent(base(stage)),
  message: 'Hello.',
  act: async (session, stage) => {
    await untilPhase(session, 'idle');
    const note = defineTool({ inputSchema: id, effect: 'idempotent', execute: (input) => input.id });
    const agent = defineAgent({ ...base(stage), instructions: 'Do something else.', tools: { note } });
    const versions = ['one', 'two'].map((buildId) => ({ deployment: 'stories', buildId }));
    for (const [i, version] of versions.entries()) {
      const { deployment: name, buildId } = version;
      await stage.startWorker([agent], { deployment: { name, buildId, behavior: 'PINNED' } });
      await expect.poll(() => setCurrentVersion(stage.client, version).then(() => true, String)).toBe(true);
      await moveSession(stage.client, session.id, version);
      await session.send({ text: `Go on with ${buildId}.`, id: buildId });
      await until(session, ({ lastText, phase }) => phase === 'idle' && lastText === `Reply ${i + 2}.`);
    }
    await session.cancel({ by: 'ada', reason: 'done' });
    await session.result();
  },
};

/** All stories by the name of their file. */
export const STORIES: Readonly<Record<string, Story>> = {
  refund,
  people,
  faults,
  effects,
  reads,
  rewound,
  stopped,
  'reads-chain': chain,
  runs,
  compacted,
  moved,
  tree,
  background,
  shared,
  unpriced,
  learned,
  interrupted,
  deployed,
  'given-up': givenUp,
  levels,
  held: heldChat,
  'lost-twice': lostTwice,
};
