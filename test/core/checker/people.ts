/** What people may ask of a session: truthful about the world, at any moment. */

import { dispatchNoOf, isFinal } from '../../../src/contract/calls.ts';
import type { JsonObject, Resolution, SessionState, ToolCall } from '../../../src/index.ts';
import type { PersonInput } from '../../../src/session/events.ts';
import { seenDigest } from '../../../src/session/question.ts';
import { Violation } from './invariants.ts';
import type { Chance, Scenario } from './scenario.ts';
import { type Action, spend, type World } from './world.ts';

/** Everything that people may ask in a state. */
export function personActions(scenario: Scenario, state: SessionState, world: World): Action[] {
  if (state.status.kind !== 'active') return [];
  const has = (chance: Chance): boolean => (world.left[chance] ?? 0) > 0;
  const actions: Action[] = [];
  const ask = (
    story: string,
    input: PersonInput,
    recorded: (world: World, accepted: boolean) => void = () => {},
    chance?: Chance,
  ): void => {
    actions.push({
      story: `a person ${story}`,
      by: 'person',
      deliveries: [{ input, recorded }],
      ...(chance === undefined ? {} : { happens: (now: World) => spend(now, chance) }),
    });
  };
  for (const mode of ['queue', 'interrupt', 'aside'] as const) {
    if (!has(mode)) continue;
    const text = `${mode} ${world.left[mode]}`;
    ask(
      `sends "${text}"`,
      { type: 'send', value: { text, mode } },
      (now, accepted) => {
        if (accepted) now.sent.push(text);
      },
      mode,
    );
  }
  for (const [chance, now] of [
    ['pause', false],
    ['pauseNow', true],
  ] as const) {
    if (!has(chance)) continue;
    ask(
      now ? 'pauses now' : 'pauses',
      { type: 'pause', value: { now } },
      (then) => {
        if (!then.paused) then.pauses += 1;
        then.paused = true;
      },
      chance,
    );
  }
  const awaitsAnswer = state.inFlight.some(({ kind, turnCame }) => kind === 'model' && turnCame !== true);
  if (state.limited !== undefined || (has('limited') && awaitsAnswer))
    ask('signals for the limiter that it is its turn', { type: 'rate_turn', value: { key: 'openai' } });
  const stuck = state.calls.some(
    ({ status, dispatches }) =>
      status.kind === 'stuck' && (status.failed !== true || dispatches.length < (scenario.dispatches ?? 3)),
  );
  if (has('seal')) ask('seals the session', { type: 'seal', value: {} }, undefined, 'seal');
  if (state.paused !== null || state.wait !== null || state.sealed !== null || stuck) {
    ask('resumes', { type: 'resume', value: {} }, (now) => {
      now.paused = false;
    });
  }
  if (has('cancel')) {
    ask(
      'cancels',
      { type: 'cancel', value: {} },
      (now) => {
        now.cancelled = true;
      },
      'cancel',
    );
  }
  if (has('undo')) {
    ask(
      'cancels and undoes',
      { type: 'cancel', value: { undo: true, whole: true } },
      (now) => {
        now.cancelled = true;
      },
      'undo',
    );
  }
  if (has('giveUp') && state.undo !== undefined)
    ask('gives the undo up', { type: 'cancel', value: { undo: false } }, undefined, 'giveUp');
  if (state.wait?.reason === 'budget') {
    if (has('raise')) {
      const { turns = 0, toolCalls = 0, tokens = 0, usd = 0 } = state.budget.limits;
      const limits = { turns: turns + 2, toolCalls: toolCalls + 1, tokens: tokens + 2_000, usd: usd + 0.02 };
      ask('raises the caps', { type: 'budget', value: { limits } }, undefined, 'raise');
    }
    ask('lets it finish', { type: 'budget', value: { finish: true } });
  }
  for (const call of state.calls) {
    if (!isFinal(call)) callActions(scenario, world, call, ask);
  }
  return actions;
}

type Ask = (
  story: string,
  input: PersonInput,
  recorded?: (world: World, accepted: boolean) => void,
  chance?: Chance,
) => void;

function callActions(scenario: Scenario, world: World, call: ToolCall, ask: Ask): void {
  const { id, status } = call;
  if (status.kind === 'approval' && status.question !== undefined) {
    const value = { callId: id, argsDigest: seenDigest(call) };
    for (const decision of [{ decision: 'respond', output: 'yes' }, { decision: 'reject' }] as const) {
      ask(`${decision.decision}s to ${id}`, { type: 'decide', value: { ...value, decision } });
    }
  } else if (status.kind === 'approval') {
    const decided = (to: World['approvals'][string]) => (now: World, accepted: boolean) => {
      if (!accepted) return;
      const before = now.approvals[id] ?? (call.compensates === undefined ? undefined : 'open');
      if (before !== 'open') throw new Violation(`the decision on ${id} was taken twice`);
      now.approvals[id] = to;
    };
    const rules = scenario.tools[call.name]?.approval;
    if (rules?.people !== undefined || rules?.byAnother === true) {
      ruledActions(call, { people: rules.people ?? 1, byAnother: rules.byAnother === true }, world, ask);
      return;
    }
    // Approving arguments that were edited and not found good has them checked again.
    const unchecked = status.problem !== undefined;
    const value = { callId: id, argsDigest: call.argsDigest };
    ask(
      `approves ${id}`,
      { type: 'decide', value: { ...value, decision: { decision: 'approve' } } },
      decided(unchecked ? 'checking' : 'granted'),
    );
    ask(
      `rejects ${id}`,
      { type: 'decide', value: { ...value, decision: { decision: 'reject' } } },
      decided('denied'),
    );
    // Of a compensation, it says that somebody undid the effect by hand, which nobody here has.
    if (call.compensates !== undefined) return;
    ask(
      `answers ${id}`,
      { type: 'decide', value: { ...value, decision: { decision: 'respond', output: 'by hand' } } },
      decided('denied'),
    );
    if ((world.left.edit ?? 0) > 0) {
      const args = { ...(call.args as JsonObject), edited: true };
      ask(
        `edits ${id}`,
        { type: 'decide', value: { ...value, decision: { decision: 'edit', args } } },
        decided('checking'),
        'edit',
      );
    }
  }
  if (status.kind === 'unknown' || status.kind === 'stuck') {
    const key = call.idempotencyKey;
    const landed = (world.landed[key] ?? 0) > 0;
    const dispatchNo = dispatchNoOf(call);
    const resolve = (resolution: Resolution, told: World['keys'][string] | null): void =>
      ask(
        `says that ${id} ${resolution.outcome}`,
        { type: 'resolve', value: { callId: id, argsDigest: call.argsDigest, dispatchNo, resolution } },
        (now, accepted) => {
          if (accepted && told !== null) now.keys[key] = told;
          if (accepted && told === 'free') now.doubted = now.doubted.filter((doubted) => doubted !== id);
        },
      );
    // Nobody says that something did not happen while it still may.
    const may = world.attempts.some((attempt) => attempt.key === key && !attempt.landed);
    if (landed) resolve({ outcome: 'landed', output: 'paid' }, 'done');
    else if (!may && call.dispatches.length < (scenario.dispatches ?? 3))
      resolve({ outcome: 'absent' }, 'free');
    // That nobody should run it again says nothing about whether it happened.
    resolve({ outcome: 'failed' }, null);
  }
}

/** What people may decide on a call that takes several of them, or another than the one who asked. */
function ruledActions(
  { id, args, argsDigest, status }: ToolCall,
  rules: { people: number; byAnother: boolean },
  world: World,
  ask: Ask,
): void {
  const unchecked = status.kind === 'approval' && status.problem !== undefined;
  const value = { callId: id, argsDigest };
  const others = ['ann', 'ben', 'unverified'] as const;
  for (const by of rules.byAnother ? ([...others, 'asker'] as const) : others) {
    const who = by === 'unverified' ? { by } : { by, verified: true as const };
    const counts = (now: World, accepted: boolean): boolean => {
      if (!accepted) return false;
      if (by === 'unverified') throw new Violation(`${id} was decided by somebody who is not verified`);
      if (rules.byAnother && by === 'asker') throw new Violation(`${id} was decided by who asked for it`);
      if (now.approvals[id] !== 'open') throw new Violation(`the decision on ${id} was taken twice`);
      return true;
    };
    ask(
      `${by} approves ${id}`,
      { type: 'decide', value: { ...value, ...who, decision: { decision: 'approve' } } },
      (now, accepted) => {
        if (!counts(now, accepted)) return;
        const given = now.approvers[id]?.now ?? [];
        if (given.includes(by)) throw new Violation(`${by} approved ${id} twice`);
        now.approvers[id] = { now: [...given, by].sort(), before: given };
        if (given.length + 1 >= rules.people) now.approvals[id] = unchecked ? 'checking' : 'granted';
      },
    );
    if ((world.left.edit ?? 0) === 0 || by === 'ben') continue;
    const edited = { ...(args as JsonObject), edited: true };
    ask(
      `${by} edits ${id}`,
      { type: 'decide', value: { ...value, ...who, decision: { decision: 'edit', args: edited } } },
      (now, accepted) => {
        if (!counts(now, accepted)) return;
        now.approvers[id] = { now: [by], before: now.approvers[id]?.now ?? [] };
        now.approvals[id] = 'checking';
      },
      'edit',
    );
  }
  ask(
    `rejects ${id}`,
    { type: 'decide', value: { ...value, decision: { decision: 'reject' } } },
    (now, accepted) => {
      if (accepted) now.approvals[id] = 'denied';
    },
  );
}
