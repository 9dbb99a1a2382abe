import { defined } from '../contract/json.ts';
import { EMPTY_DIGEST, effectNamespace } from '../contract/keys.ts';
import type { EffectInput, SessionInput } from '../contract/session-input.ts';
import type { SessionState } from '../contract/state.ts';
import { addAuthor } from './approvers.ts';
import type { Moment } from './events.ts';
import { setManifest } from './manifest.ts';
import { continued } from './past.ts';
import { applyPerson } from './people.ts';
import { newShare } from './pool.ts';
import { definedLimits, freshCall, iso } from './state.ts';

/** Identifies a run of a session. */
export interface SessionIdentity {
  sessionId: string;
  runId: string;
  /** The run that started the session. Temporal keeps it over a reset. */
  firstRunId: string;
}

/**
 * The state of a session at the start of a run. In a new session, the first message is queued and no command was
 * issued.
 */
export function initialState(identity: SessionIdentity, input: SessionInput, moment: Moment): SessionState {
  if (input.carried !== undefined) return continued(input.carried, identity.runId);
  const state: SessionState = {
    schema: 1,
    sessionId: identity.sessionId,
    namespace: effectNamespace(identity.sessionId, identity.firstRunId),
    runId: identity.runId,
    agent: input.agent,
    context: input.context ?? null,
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
    message: 0,
    messagesTaken: 0,
    calls: [],
    batch: [],
    interrupted: false,
    inFlight: [],
    seq: 0,
    activeSince: null,
    budget: {
      limits: definedLimits(input.budget ?? {}),
      spent: {
        turns: 0,
        toolCalls: 0,
        inputTokens: 0,
        outputTokens: 0,
        nanoUsd: 0,
        lostReplies: 0,
        lostNanoUsd: 0,
        activeMs: 0,
      },
      reserved: { nanoUsd: 0, tokens: 0 },
    },
    plan: [],
    scratchpadRoot: input.scratchpadRoot ?? null,
    paused: null,
    pauses: [],
    wait: null,
    cancelling: null,
    finishing: false,
    origin: null,
    loading: null,
    carried: [],
    sealed: null,
    loop: { digest: '', count: 0 },
    effect: null,
    modelFailures: 0,
    workersLost: 0,
    resting: false,
    fromModel: 0,
    notices: [],
  };
  if (input.pool !== undefined) state.pool = newShare(input.pool);
  if (input.origin !== undefined) {
    const { edits, undo, cancel, ...origin } = input.origin;
    state.origin = origin;
    state.loading = { parts: [], edits: edits ?? null, ...defined({ undo, cancel }) };
  }
  if (input.parent !== undefined) state.parent = input.parent;
  for (const author of input.authors ?? []) addAuthor(state, author);
  if (input.effect !== undefined) becomeEffect(state, input.effect);
  if (input.message !== undefined) applyPerson(state, { type: 'send', value: input.message }, moment);
  if (input.described !== undefined) {
    state.searchAttributes = input.described.searchAttributes;
    setManifest(state, input.described.manifest, moment);
  }
  return state;
}

/** Makes the session a global effect: it has no model, and makes one call for all sessions that ask for it. */
function becomeEffect(state: SessionState, effect: EffectInput): void {
  const id = 'call_0_0';
  state.mode = 'effect';
  state.manifest = effect.manifest;
  state.searchAttributes = effect.searchAttributes;
  const tool = effect.manifest.tools[effect.tool];
  state.effect = { requestedBy: effect.requestedBy, ttlMs: tool?.ttlMs ?? 0, waiters: [] };
  state.calls.push({
    ...freshCall(id, state, effect.tool, effect.args),
    effect: 'mutate',
    // The workflow id makes the call unique, so no equal call is looked up in this session.
    scope: 'call',
    argsDigest: effect.argsDigest,
    idempotencyKey: effect.idempotencyKey,
    ...(effect.doubt === undefined ? {} : { status: { kind: 'settling', reason: effect.doubt } }),
  });
  state.batch = [id];
}
