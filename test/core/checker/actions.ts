/** What can happen in a state: what the world may answer, and what people may ask. */

import type { DescribeResult } from '../../../src/contract/activities.ts';
import { effectsDigest } from '../../../src/contract/keys.ts';
import type { ModelFailureKind, ModelResult, PreparedCall } from '../../../src/contract/model-call.ts';
import { isOver, sealedCalls, unsealedFrom } from '../../../src/contract/past.ts';
import { bytesOf, isCut, viewOf } from '../../../src/contract/view.ts';
import type { InFlight, Message, SessionState } from '../../../src/index.ts';
import type { Outcome } from '../../../src/session/events.ts';
import { childOf } from '../../../src/session/sub-agents.ts';
import { children, lookActions, steerActions } from './child-actions.ts';
import { attachActions, globalEffects } from './global-actions.ts';
import { personActions } from './people.ts';
import { manifestOf, plannedCall, type Scenario } from './scenario.ts';
import { readsActions, readsOf, toolActions, verifyActions } from './tool-actions.ts';
import { type Action, answer, forget, land, spend, type World } from './world.ts';

/** Everything that can happen in a state. */
export function actionsOf(scenario: Scenario, state: SessionState, world: World): Action[] {
  const single = [
    ...state.inFlight.flatMap((flight) => flightActions(scenario, state, world, flight)),
    ...lateLandings(state, world),
    ...globalEffects(state, world),
    ...children(state, world),
    ...personActions(scenario, state, world),
    ...timeActions(state, world),
    ...nextRun(state),
  ];
  const { together = 1 } = scenario;
  const most = together > 1 ? groups(single, together) : [];
  return [...single, ...most];
}

function flightActions(scenario: Scenario, state: SessionState, world: World, flight: InFlight): Action[] {
  switch (flight.kind) {
    case 'describe':
      return describeActions(scenario, world, flight);
    case 'model':
      return flight.compact === true
        ? compactActions(state, world, flight)
        : modelActions(scenario, state, world, flight);
    case 'reads':
      return readsActions(world, flight);
    case 'tool':
      return toolActions(state, world, flight);
    case 'attach': {
      const call = state.calls.find(({ id }) => id === flight.callId);
      return call !== undefined && childOf(state, call) !== undefined
        ? lookActions(world, flight, call)
        : attachActions(state, world, flight);
    }
    case 'steer':
      return steerActions(flight);
    case 'report':
      // Of the workflow of an effect, which is followed from outside.
      return [];
    case 'verify':
      return verifyActions(state, world, flight);
    case 'prepare':
      return prepareActions(scenario, state, flight);
    case 'settle':
      return [
        answer(flight, `the settle timer of ${flight.callId} fires`, { kind: 'timer' }, (now) => {
          // The assumption: what was lost has ended, and cannot land after its settle time.
          if (!now.landsForEver) {
            forget(now, ({ lost, key }) => lost && key === keyIn(state, flight));
          }
        }),
      ];
    case 'approval_expiry': {
      const approves = state.manifest?.tools[nameOf(state, flight)]?.approval.onExpiry === 'approve';
      return [
        answer(
          flight,
          `the approval of ${flight.callId} expires`,
          { kind: 'timer' },
          undefined,
          (now, accepted) => {
            const callId = flight.callId ?? '';
            if (accepted && now.approvals[callId] === 'open')
              now.approvals[callId] = approves ? 'granted' : 'denied';
          },
        ),
      ];
    }
    case 'load': {
      if (state.loading === null) return [earlierAction(state, world, flight)];
      const value = { kind: 'part', parts: 1, text: world.loaded } as const;
      return [answer(flight, 'the checkpoint is loaded', { kind: 'load', result: { ok: true, value } })];
    }
    case 'aside':
      return asideActions(scenario, world, flight);
    case 'storePast':
      return storeActions(state, world, flight);
    case 'takenIds':
    case 'notify':
    case 'draw':
    case 'pool_recheck':
      throw new Error('no scenario has so many messages, notifies, or shares a pool');
    case 'backoff':
    case 'model_backoff':
    case 'recheck':
    case 'agent_recheck':
    case 'child_recheck':
    case 'rate_recheck':
    case 'ttl':
    case 'sleep':
    case 'reminder':
      return [answer(flight, `the ${flight.kind} timer of ${flight.callId} fires`, { kind: 'timer' })];
    default:
      return flight.kind satisfies never;
  }
}

/** A side answer comes, is lost with its worker, or is refused. */
function asideActions(scenario: Scenario, world: World, flight: InFlight): Action[] {
  const counted = scenario.usage !== 'uncounted';
  const usage = { inputTokens: counted ? 10 : null, outputTokens: counted ? 5 : null };
  const value = { kind: 'reply', blocks: [{ kind: 'text', text: 'By the way.' }], calls: [], usage } as const;
  const outcome = (result: Extract<Outcome, { kind: 'aside' }>['result']): Outcome => ({
    kind: 'aside',
    result,
  });
  const actions = [
    answer(
      flight,
      'the side answer comes',
      outcome({ ok: true, value: { ...value, blocks: [...value.blocks], calls: [] } }),
    ),
  ];
  if (flight.cancelled === true) {
    const failure = { kind: 'cancelled', message: 'cancelled' } as const;
    actions.push(answer(flight, 'the side answer never began', outcome({ ok: false, failure })));
  }
  if ((world.left.asideFault ?? 0) === 0) return actions;
  const fault = (now: World): void => spend(now, 'asideFault');
  for (const failure of ['worker_lost', 'provider_rejected'] as const)
    actions.push(
      answer(
        flight,
        `the side answer fails: ${failure}`,
        outcome({ ok: true, value: { kind: 'failed', failure, message: failure, maybeBilled: 1 } }),
        fault,
      ),
    );
  return actions;
}

/** The past is stored, as it is at that moment, or cannot be. */
function storeActions(state: SessionState, world: World, flight: InFlight): Action[] {
  const { transcript, calls, pauses } = state;
  const leaving = {
    transcript: transcript.slice(unsealedFrom(state)),
    calls: calls.slice(0, sealedCalls(state)),
    pauses: pauses.filter(isOver),
  };
  const stored = {
    kind: 'stored',
    newest: { key: '', parts: 1, digest: '' },
    pauses: leaving.pauses.length,
  } as const;
  const actions = [
    answer(
      flight,
      'the past is stored',
      { kind: 'storePast', result: { ok: true, value: stored } },
      ({ sealed }) => {
        sealed.transcript.push(...leaving.transcript);
        sealed.calls.push(...leaving.calls);
        sealed.pauses.push(...leaving.pauses);
      },
    ),
  ];
  const { unstored = 0 } = world.left;
  if (flight.cancelled === true) {
    const failure = { kind: 'cancelled', message: 'cancelled' } as const;
    const outcome = { kind: 'storePast', result: { ok: false, failure } } as const;
    actions.push(answer(flight, 'the past is not stored any more', outcome));
  } else if (unstored > 0) {
    const value = { kind: 'unavailable', message: 'gone' } as const;
    const outcome = { kind: 'storePast', result: { ok: true, value } } as const;
    actions.push(answer(flight, 'the past cannot be stored', outcome, (now) => spend(now, 'unstored')));
  }
  return actions;
}

/** The effects of earlier runs are read, one at a time. */
function earlierAction({ undo }: SessionState, { sealed }: World, flight: InFlight): Action {
  const all = sealed.calls.filter(
    ({ effect, replayOf, dispatches }) => effect !== 'read' && replayOf === null && dispatches.length > 0,
  );
  const end = Math.min(undo?.earlier ?? all.length, all.length);
  const from = Math.max(0, end - 1);
  const value = { kind: 'effects', calls: all.slice(from, end), from, digest: effectsDigest(all) } as const;
  return answer(flight, 'an effect of an earlier run is read', {
    kind: 'load',
    result: { ok: true, value: structuredClone(value) },
  });
}

/** What comes before the next run begins goes along. */
function nextRun({ continuing }: SessionState): Action[] {
  return continuing === 'now'
    ? [{ story: 'the next run begins', by: 'world', time: 'next run', deliveries: [] }]
    : [];
}

function keyIn(state: SessionState, flight: InFlight): string {
  return state.calls.find(({ id }) => id === flight.callId)?.idempotencyKey ?? '';
}

function nameOf(state: SessionState, flight: InFlight): string {
  return state.calls.find(({ id }) => id === flight.callId)?.name ?? '';
}

function describeActions(scenario: Scenario, world: World, flight: InFlight): Action[] {
  const manifest = manifestOf(scenario);
  const described = (value: DescribeResult): Outcome => ({ kind: 'describe', result: { ok: true, value } });
  const actions = [
    answer(
      flight,
      'the worker says what the agent is',
      described({ kind: 'manifest', manifest, searchAttributes: [] }),
    ),
  ];
  if ((world.left.modelFault ?? 0) === 0) return actions;
  const fault = (now: World): void => spend(now, 'modelFault');
  const missing = described({ kind: 'unavailable', message: 'no such agent' });
  const failure = { kind: 'timeout', message: 'lost' } as const;
  const lost: Outcome = { kind: 'describe', result: { ok: false, failure } };
  return [
    ...actions,
    answer(flight, 'the worker has no such agent', missing, fault),
    answer(flight, 'the worker does not say what the agent is', lost, fault),
  ];
}

function modelActions(scenario: Scenario, state: SessionState, world: World, flight: InFlight): Action[] {
  const turn = state.turn + 1;
  const planned = flight.summarize === true ? [] : (scenario.replies[turn - 1] ?? []);
  const calls = planned.map(({ tool, args, needsApproval }): PreparedCall => {
    return { name: tool, args, ...(needsApproval === true ? { needsApproval } : {}) };
  });
  const counted = scenario.usage !== 'uncounted';
  const actions = [
    answer(
      flight,
      planned.length === 0 ? 'the model answers' : `the model asks for ${planned.length} calls`,
      {
        kind: 'model',
        result: {
          ok: true,
          value: {
            kind: 'reply',
            model: 0,
            blocks: planned.length === 0 ? [{ kind: 'text', text: 'Done.' }] : [],
            calls,
            finishReason: 'stop',
            usage: { inputTokens: counted ? 10 : null, outputTokens: counted ? 5 : null },
            ...readsOf(flight),
          },
        },
      },
      undefined,
      (now) => {
        for (const [i, { needsApproval }] of planned.entries()) {
          if (needsApproval === true) now.approvals[`call_${turn}_${i}`] = 'open';
        }
      },
    ),
  ];
  if (flight.reads !== undefined) {
    const none = {
      kind: 'model',
      result: { ok: true, value: { kind: 'results', reason: 'not_wanted' } },
    } as const;
    const all = { ...none.result.value, ...readsOf(flight) };
    actions.push(
      answer(flight, 'the reads return, and no model is asked', {
        kind: 'model',
        result: { ok: true, value: all },
      }),
    );
    if (flight.cancelled === true || (world.left.readFault ?? 0) > 0) {
      const fault = (now: World): void => {
        if (flight.cancelled !== true) spend(now, 'readFault');
      };
      actions.push(answer(flight, 'no read returns, and no model is asked', none, fault));
    }
  }
  if ((world.left.limited ?? 0) > 0) {
    const value = { kind: 'limited', key: 'openai', message: 'full', ...readsOf(flight) } as const;
    actions.push(
      answer(flight, 'a rate limit has no room', { kind: 'model', result: { ok: true, value } }, (now) =>
        spend(now, 'limited'),
      ),
    );
  }
  if (flight.cancelled === true) {
    const failure = { kind: 'cancelled', message: 'cancelled' } as const;
    actions.push(
      answer(flight, 'the model call never started', { kind: 'model', result: { ok: false, failure } }),
    );
  }
  if ((world.left.modelFault ?? 0) > 0) {
    const fault = (now: World): void => spend(now, 'modelFault');
    const failure = { kind: 'timeout', message: 'lost' } as const;
    actions.push(
      answer(flight, 'the model call is lost', { kind: 'model', result: { ok: false, failure } }, fault),
    );
    const changed = { kind: 'manifest', manifest: { ...manifestOf(scenario), digest: 'another' } } as const;
    actions.push(
      answer(
        flight,
        'the worker has another definition',
        { kind: 'model', result: { ok: true, value: changed } },
        fault,
      ),
    );
    actions.push(...failures(world, flight, 'interrupted', 'provider_unavailable'));
    if (scenario.manifest?.contextWindow !== undefined)
      actions.push(...failures(world, flight, 'context_window'));
  }
  return actions;
}

/** Ways in which a model call fails with a word of it, each at the cost of a chance. */
function failures(world: World, flight: InFlight, ...kinds: ModelFailureKind[]): Action[] {
  if ((world.left.modelFault ?? 0) === 0) return [];
  return kinds.map((failure) => {
    const maybeBilled = failure === 'interrupted' ? 1 : 0;
    const value = { kind: 'failed', failure, message: failure, maybeBilled } as const;
    const outcome: Outcome = { kind: 'model', result: { ok: true, value } };
    return answer(flight, `the model call fails: ${failure}`, outcome, (now) => spend(now, 'modelFault'));
  });
}

/** The older messages are summarized, or cannot be, or the request fails. */
function compactActions(state: SessionState, world: World, flight: InFlight): Action[] {
  const view = viewOf(state.transcript);
  const cuts = [...view.keys()].filter((i) => isCut(view, i));
  const compacted = (value: ModelResult, story: string, fault?: (now: World) => void): Action =>
    answer(flight, story, { kind: 'model', result: { ok: true, value } }, fault);
  const none = { kind: 'uncompacted', message: 'nothing to summarize' } as const;
  const cut = cuts.at(-1);
  const actions: Action[] = [];
  if (cut === undefined) actions.push(compacted(none, 'nothing can be summarized'));
  else {
    const value = {
      kind: 'compacted',
      before: state.transcript.indexOf(view[cut] as Message),
      replaced: 100_000,
      kept: bytesOf(view.slice(cut)),
      text: 'All is well.',
      usage: { inputTokens: 10, outputTokens: 5 },
    } as const;
    actions.push(compacted(value, 'the older messages are summarized'));
    if ((world.left.modelFault ?? 0) > 0) {
      const fault = (now: World): void => spend(now, 'modelFault');
      actions.push(
        compacted({ ...value, more: true }, 'a part of the older messages is summarized', fault),
        compacted({ ...value, replaced: 10 }, 'the summary is longer than what it stands for', fault),
      );
    }
  }
  if (flight.cancelled === true) {
    const failure = { kind: 'cancelled', message: 'cancelled' } as const;
    const outcome: Outcome = { kind: 'model', result: { ok: false, failure } };
    actions.push(answer(flight, 'the compaction never started', outcome));
  }
  const kinds = ['worker_lost', 'interrupted', 'context_window', 'invalid_response'] as const;
  return [...actions, ...failures(world, flight, ...kinds)];
}

function prepareActions(scenario: Scenario, state: SessionState, flight: InFlight): Action[] {
  const call = state.calls.find(({ id }) => id === flight.callId);
  if (call === undefined) return [];
  const { name, args, id } = call;
  const decided =
    (approval: 'granted' | 'open') =>
    (now: World): void => {
      // A call needs an approval, or another one, once its arguments could not be checked.
      const approvers = now.approvers[id];
      // What was approved before an edit stands again. What could not be prepared anew is asked anew.
      const isEdit = call.status.kind === 'preparing' && call.status.before !== undefined;
      if (approvers !== undefined && approval === 'open') approvers.now = isEdit ? approvers.before : [];
      const people = scenario.tools[name]?.approval?.people ?? 1;
      const more = people > 1 && (approvers?.now.length ?? 0) < people;
      if (approval === 'open' || now.approvals[id] === 'checking')
        now.approvals[id] = more ? 'open' : approval;
    };
  const value: PreparedCall = {
    name,
    args,
    ...(plannedCall(scenario, id)?.needsApproval === true ? { needsApproval: true } : {}),
  };
  const actions = [
    answer(
      flight,
      `the edited arguments of ${id} fit`,
      { kind: 'prepare', result: { ok: true, value } },
      undefined,
      decided('granted'),
    ),
  ];
  const reopened = (story: string, outcome: Outcome): void => {
    actions.push(answer(flight, story, outcome, undefined, decided('open')));
  };
  reopened(`the edited arguments of ${id} do not fit`, {
    kind: 'prepare',
    result: { ok: true, value: { name, args, problem: 'do not fit' } },
  });
  reopened(`the check of ${id}'s arguments is lost`, {
    kind: 'prepare',
    result: { ok: false, failure: { kind: 'timeout', message: 'lost' } },
  });
  if (flight.cancelled === true) {
    reopened(`the check of ${id}'s arguments never started`, {
      kind: 'prepare',
      result: { ok: false, failure: { kind: 'cancelled', message: 'cancelled' } },
    });
  }
  return actions;
}

/** Effects of lost attempts, of which the session hears nothing. */
function lateLandings(state: SessionState, world: World): Action[] {
  const lost = world.attempts.filter((attempt) => attempt.lost);
  // What a fork was taken from goes on by itself, and has no timer here after which its attempts are over.
  const elsewhere = state.origin?.kind === 'fork' ? lost.filter(({ runId }) => runId !== state.runId) : [];
  return [
    ...elsewhere.map(
      (attempt): Action => ({
        story: `the dispatch of ${attempt.callId} by another session ends before its effect`,
        by: 'world',
        happens: (now) => forget(now, ({ seq, runId }) => seq === attempt.seq && runId === attempt.runId),
        deliveries: [],
      }),
    ),
    ...lost.map(
      (attempt): Action => ({
        story: `the lost dispatch of ${attempt.callId} lands late`,
        by: 'world',
        happens: (now) => land(now, attempt),
        deliveries: [],
      }),
    ),
  ];
}

/** A session may be taken back to what it was, by a person who seals it first or after somebody has ended its run. */
function timeActions(state: SessionState, world: World): Action[] {
  const action = (time: Exclude<NonNullable<Action['time']>, 'next run'>, story: string): Action[] =>
    (world.left[time] ?? 0) > 0
      ? [{ story, by: 'person', time, happens: (now) => spend(now, time), deliveries: [] }]
      : [];
  if (state.loading !== null || state.status.kind !== 'active') return [];
  if (world.checkpoint === null) return action('checkpoint', 'this is a checkpoint');
  return [
    ...action('rewind', 'a person rewinds the session to the checkpoint'),
    ...action('terminate', 'the run is terminated, and a person rewinds the session to the checkpoint'),
    ...action('fork', 'a person forks the session at the checkpoint'),
  ];
}

/** Any that reach the session in one activation: people's first, then outcomes by their command. */
function groups(actions: readonly Action[], most: number): Action[] {
  const seqOf = (action: Action): number => {
    const input = action.deliveries[0]?.input;
    return input?.type === 'outcome' ? input.seq : -1;
  };
  const speaking = actions.filter(({ deliveries }) => deliveries.length > 0);
  const grown = (group: readonly Action[]): Action[][] => {
    const last = group.at(-1);
    return speaking
      .filter((next) => {
        if (last === undefined) return true;
        if (group.includes(next)) return false;
        const [a, b] = [seqOf(last), seqOf(next)];
        return a < b || (a === -1 && b === -1);
      })
      .flatMap((next) => {
        const larger = [...group, next];
        return larger.length < most ? [larger, ...grown(larger)] : [larger];
      });
  };
  return grown([])
    .filter(({ length }) => length > 1)
    .map(
      (group): Action => ({
        story: group.map(({ story }) => story).join(', and in the same activation '),
        by: group.some(({ by }) => by === 'world') ? 'world' : 'person',
        happens: (world) => {
          for (const { happens } of group) happens?.(world);
        },
        deliveries: group.flatMap(({ deliveries }) => deliveries),
      }),
    );
}
