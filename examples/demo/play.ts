/** The story: a refund over the limit, an approval, a worker's death at the worst moment, and its successor. */
import { type Session, Sessions } from 'perdure';
import { callCommand } from '../../src/session/commands.ts';
import { createPaymentsControl, type PaymentsControl } from '../payments/control.ts';
import { followUntil, type Journal } from './journal.ts';
import { Narrator } from './narrator.ts';
import type { Running } from './processes.ts';
import type { Stage } from './stage.ts';
import type { Story } from './story.ts';

/** How long a step may take before the demo gives up: a real model may think for a while. */
const LIMIT_MS = 120_000;

/** How the story went. */
export type Ending =
  | { kind: 'refunded'; sessionId: string; killed: Running; next: Running }
  /** A person did not approve. */
  | { kind: 'not_refunded' };

interface Scene {
  story: Story;
  stage: Stage;
  control: PaymentsControl;
  session: Session;
  signal: AbortSignal;
  follow: (
    what: string,
    condition: (journal: Journal) => boolean,
    limits?: { limitMs?: number; signal?: AbortSignal },
  ) => Promise<Journal>;
}

/**
 * Plays the story.
 *
 * @param options.manual - leave the approval to a person.
 * @throws Error in words for a person when it takes another course, or a step takes too long.
 */
export async function play(
  story: Story,
  stage: Stage,
  signal: AbortSignal,
  options: { manual: boolean },
): Promise<Ending> {
  const killed = await stage.startWorker('worker 1');
  story.step(`worker 1: pid ${killed.pid}`);
  story.detail(
    'To be quick, a lost refund settles for 1 s here before it is looked for. The default is 5 s.',
  );

  story.title('A refund');
  story.begin();
  const scene = await start(story, stage, signal);
  const { control, follow, session } = scene;
  const asked = await follow('a request for approval', resting);
  if (asked.phase !== 'approval') {
    throw new Error(`The agent did not ask for a refund over the limit: ${why(asked)}.`);
  }

  story.title('The worker dies');
  await control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  story.step('the payments service will write the next refund to its ledger and hold back the reply');
  const approved = await (options.manual ? waitForPerson(scene, asked) : approve(scene, asked));
  if (!approved) {
    await control.disarm();
    await untilEnd(scene);
    return { kind: 'not_refunded' };
  }
  const row = await untilHeld(scene);
  await killed.kill();
  story.step(`worker 1 (pid ${killed.pid}) got SIGKILL`, 'red');
  story.detail(`The ledger has row ${row}: the money has moved. The history has an open call and no result.`);
  await control.release();

  story.title('Another worker takes over');
  story.detail('starting worker 2 …');
  const next = await stage.startWorker('worker 2');
  story.step(`worker 2: pid ${next.pid}`);
  story.detail('It sees that worker 1 is dead and gives up what it had in flight. On another host Temporal');
  story.detail('would miss the heartbeat of worker 1 after 10 s.');
  await untilEnd(scene);
  return { kind: 'refunded', sessionId: session.id, killed, next };
}

async function start(story: Story, stage: Stage, signal: AbortSignal): Promise<Scene> {
  const { client } = stage;
  const id = `ticket-1002-${stage.dir.slice(-6)}`;
  const message = 'Order 1002 arrived broken. Please refund it.';
  const session = await new Sessions(client).start('support', { id, message, mode: 'task' });
  story.step(`session ${id}: "${message}"`);
  const { tell: seen } = new Narrator(story);
  return {
    story,
    stage,
    session,
    signal,
    control: createPaymentsControl(stage.paymentsUrl),
    follow: (what, condition, limits = {}) =>
      followUntil(client, id, { what, condition, seen, limitMs: LIMIT_MS, signal, ...limits }),
  };
}

/** Whether nothing more will happen by itself. */
function resting({ phase, state }: Journal): boolean {
  if (phase === 'idle') return (state?.transcript.length ?? 0) > 1;
  return phase === 'closed' || phase === 'approval' || phase === 'waiting' || phase === 'unknown_effect';
}

function why({ state, phase }: Journal): string {
  if (state?.wait) return `it waits (${state.wait.reason}: ${state.wait.message})`;
  if (state?.status.kind === 'completed') return `it answered "${state.status.text}"`;
  return phase === 'unknown_effect' ? 'a call has an unknown outcome' : `it is ${phase}`;
}

function waitingCall({ state }: Journal): { id: string; argsDigest: string } {
  const call = state?.calls.find(({ status }) => status.kind === 'approval');
  if (call === undefined) throw new Error('No call waits for approval.');
  return call;
}

async function approve({ story, session }: Scene, asked: Journal): Promise<boolean> {
  const { id, argsDigest } = waitingCall(asked);
  await session.decide({ callId: id, argsDigest }, { decision: 'approve' }, { by: 'the demo' });
  story.step('approved, by the demo itself (with --manual it is up to you)');
  return true;
}

async function waitForPerson({ story, stage, session, follow }: Scene, asked: Journal): Promise<boolean> {
  const { id, argsDigest } = waitingCall(asked);
  const { address, namespace } = stage.server;
  const command = (verb: string): string => {
    const decides = callCommand(verb, session.id, { callId: id, argsDigest }).replace(
      /^perdure/,
      'npx tsx src/cli/main.ts',
    );
    // The options go before a profile or a namespace that the terminal is set up for.
    return `${decides} --address ${address} --namespace ${namespace}`;
  };
  story.step('it is up to you. In another terminal, in this directory:');
  story.command(command('approve'));
  story.detail('or, to see what becomes of a refund that is not approved:');
  story.command(command('reject'));
  story.detail('waiting for you …');
  const { state } = await follow('a decision', ({ phase }) => phase !== 'approval', { limitMs: Infinity });
  const decision = state?.calls.find((call) => call.id === id)?.decision;
  story.step(`${decision?.decision ?? 'no decision'}, by ${decision?.by ?? 'nobody'}`);
  return decision?.decision === 'approve' || decision?.decision === 'edit';
}

async function untilEnd({ story, session, follow }: Scene): Promise<void> {
  const closed = await follow('the end of the session', resting);
  if (closed.phase !== 'closed') throw new Error(`The session did not end: ${why(closed)}.`);
  const { text } = await session.result();
  story.step(`the agent: "${text}"`, 'green');
}

/** Waits until the service has written the refund and holds back its reply; answers the row's id. */
async function untilHeld({ control, follow, signal }: Scene): Promise<string> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  try {
    const [held] = await Promise.race([
      control.held(1, either),
      follow('the refund', resting, { signal: either }).then((journal) => {
        throw new Error(`No refund reached the payments service: ${why(journal)}.`);
      }),
    ]);
    return held?.row ?? '';
  } finally {
    over.abort();
  }
}
