import type { SessionInput } from '../contract/inputs.ts';
import { EMPTY_DIGEST } from '../contract/keys.ts';
import type { SessionState } from '../contract/state.ts';
import type { Moment } from './events.ts';
import { applyPerson } from './people.ts';
import { definedLimits, iso } from './state.ts';

/** The state of a session at its start: its first message is queued, nothing has been asked of the world. */
export function initialState(
  identity: { sessionId: string; runId: string },
  input: SessionInput,
  moment: Moment,
): SessionState {
  const state: SessionState = {
    schema: 1,
    sessionId: identity.sessionId,
    namespace: input.namespace ?? identity.sessionId,
    runId: identity.runId,
    agent: input.agent,
    tenant: input.tenant ?? null,
    mode: input.mode ?? 'chat',
    createdAt: iso(moment),
    status: { kind: 'active' },
    manifest: null,
    searchAttributes: [],
    turn: 0,
    transcript: [],
    position: { count: 0, digest: EMPTY_DIGEST },
    promptBytes: 0,
    measured: null,
    inbox: [],
    calls: [],
    batch: [],
    interrupted: false,
    inFlight: [],
    seq: 0,
    activeSince: null,
    budget: {
      limits: definedLimits(input.budget ?? {}),
      spent: { turns: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, nanoUsd: 0, activeMs: 0 },
      reserved: { nanoUsd: 0, tokens: 0 },
    },
    plan: [],
    scratchpadRoot: input.scratchpadRoot ?? null,
    paused: null,
    pauses: [],
    wait: null,
    cancelling: null,
    finishing: false,
    loop: { digest: '', count: 0 },
    modelFailures: 0,
    fromModel: 0,
    notices: [],
  };
  if (input.message !== undefined) applyPerson(state, { type: 'send', value: input.message }, moment);
  return state;
}
