/** A handle of one session, for clients. */
import type { Client, WorkflowExecutionDescription, WorkflowHandle } from '@temporalio/client';
import type { Decision, Resolution, SeenCall, SeenDispatch } from '../contract/calls.ts';
import type { EditInput } from '../contract/edit.ts';
import { invalid, isPerdureError, PerdureError } from '../contract/errors.ts';
import type { BudgetInput, CancelInput, CancelRequest, PauseInput, SendInput } from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import type { LiveChannel } from '../contract/live-text.ts';
import type { Message } from '../contract/messages.ts';
import { QUERY, SIGNAL, UPDATE } from '../contract/names.ts';
import type { Piece } from '../contract/piece.ts';
import type { SessionResult } from '../contract/session-input.ts';
import type { Phase, PlanStep, QueuedMessage, SessionState } from '../contract/state.ts';
import type { UndoPlan } from '../contract/undo.ts';
import type { ValueRef, ValueStore } from '../contract/values.ts';
import { viewOf } from '../contract/view.ts';
import type {
  BudgetView,
  CallDetail,
  CallsPage,
  Page,
  PageInput,
  PendingCall,
  RunPage,
  SessionView,
  TranscriptPage,
} from '../contract/views.ts';
import { budgetView, callDetail, callsPage, messagesPage, sessionView } from '../session/views.ts';
import { retryHint, sessionError } from '../temporal/errors.ts';
import { explained } from '../temporal/unanswered.ts';
import { type Value, Values } from '../values/index.ts';
import { checkHeadroom, checkInput, refuseMore } from './checks.ts';
import { endedError, withEnd } from './ended.ts';
import { type PartsInput, storedMessage } from './message-parts.ts';
import { describeSession, readEither, wholePage } from './read-session.ts';
import { refusePlain } from './refuse-plain.ts';
import { ANSWER_MS, answered, updated } from './requests.ts';
import { sessionResult } from './session-result.ts';
import { withId } from './start-options.ts';
import { type StreamOptions, type StreamPart, streamSession } from './stream.ts';
import { presentCursor } from './stream-runs.ts';
import { readTree, type Tree } from './tree.ts';
import { readUndoPlan } from './undo-plan.ts';

/** What a program shares with the workers. */
export interface SessionStores {
  /** Where the workers store large results. */
  values?: ValueStore | undefined;
  /** Carries the live text of the models. Default: a stream reads the workers' heartbeats. */
  live?: LiveChannel | undefined;
}

/** What {@link Session.read} returns. */
export interface SessionReading {
  state: SessionState;
  /** What {@link Session.state} returns. */
  view: SessionView;
  /** `history`: no worker answered, and inputs that no worker has processed yet are missing. */
  source: 'worker' | 'history';
  /** Temporal's word for the run: `running`, `completed`, `terminated`, … */
  run: string;
}

/**
 * A handle of a session. It holds nothing of the session itself. Inputs are checked for size and unknown names before
 * they are sent. A refusal is a `PerdureError` with the session's own code, or `SESSION_FULL` when its history is full.
 */
export class Session<OUTPUT = unknown> {
  readonly id: string;
  readonly #client: Client;
  /** Signals are sent in the order of their calls, although each checks the history first. */
  #signals: Promise<void> = Promise.resolve();
  readonly #run: { workflowId: string; runId?: string };
  readonly #handle: WorkflowHandle;
  readonly #values: ValueStore | undefined;
  readonly #live: LiveChannel | undefined;

  /**
   * @param runId - the only run to ask, without its successors.
   * @param stores - `values`: where the workers store large results; `live`: the workers' live channel.
   */
  constructor(client: Client, id: string, runId?: string, { values, live }: SessionStores = {}) {
    this.id = id;
    this.#client = client;
    this.#values = values;
    this.#live = live;
    this.#run = { workflowId: id, ...defined({ runId }) };
    this.#handle = client.workflow.getHandle(id, runId);
  }

  /**
   * The session at a glance. Like all reads, it comes from a worker, or from the history when no worker answers. The
   * history lacks inputs that no worker has processed yet.
   *
   * @throws PerdureError `SESSION_NOT_FOUND`, `SERVER_UNAVAILABLE`, `CHECKPOINT_CORRUPTION`
   */
  async state(): Promise<SessionView> {
    let execution: WorkflowExecutionDescription | undefined;
    const view = await this.#read(QUERY.state, (state, described) => {
      execution = described;
      return sessionView(state);
    });
    return this.#withEnd(view, execution);
  }

  /** The state, as in a checkpoint: with the messages and calls of the present run. */
  async snapshot(): Promise<SessionState> {
    return this.#read(QUERY.snapshot, (state) => state);
  }

  /** The state as {@link Session.snapshot} gives it, where it was read, and Temporal's word for the run. */
  async read(): Promise<SessionReading> {
    const execution = await describeSession(this.#client, this.id, this.#run.runId);
    let source: SessionReading['source'] = 'worker';
    const state = await this.#read(QUERY.snapshot, (folded) => {
      source = 'history';
      return folded;
    });
    const view = await withEnd(this.#client, sessionView(state), execution);
    return { state, view, source, run: execution.status.name.toLowerCase() };
  }

  /** A page of the messages, by default the newest. */
  async transcript(page: PageInput = {}): Promise<TranscriptPage> {
    return this.#whole(
      'messages',
      page,
      this.#read(QUERY.transcript, (state) => messagesPage(state, page), page),
    );
  }

  /**
   * The messages that the model sees: the last summary, and the messages that it does not replace. Without a summary,
   * all messages.
   */
  async view(): Promise<readonly Message[]> {
    let messages: Message[] = [];
    for (let before: number | undefined; ; ) {
      const { items, first } = await this.transcript({ limit: 200, ...(before !== undefined && { before }) });
      messages = [...items, ...messages];
      const needed = messages.findLast(({ summary }) => summary !== undefined)?.summary?.before ?? 0;
      if (first <= needed) return viewOf(messages, first);
      before = first;
    }
  }

  /** A page of the tool-call log, by default the newest. */
  async calls(page: PageInput = {}): Promise<CallsPage> {
    return this.#whole(
      'calls',
      page,
      this.#read(QUERY.calls, (state) => callsPage(state, page), page),
    );
  }

  /**
   * A call of the present run, with its tool's schema and what was said before it.
   *
   * @throws PerdureError `UNKNOWN_CALL` when it is not in this run: {@link Session.calls} has those of earlier runs
   */
  async call(callId: string): Promise<CallDetail> {
    const state = await this.snapshot();
    const detail = callDetail(state, callId);
    if (detail !== null && (state.past === undefined || detail.asked.message !== '')) return detail;
    if (detail !== null) {
      // The session went on in a new run while the call waited.
      const { items } = await this.transcript({ before: state.past?.messages ?? 0 });
      return callDetail({ ...state, transcript: [...items, ...state.transcript] }, callId) ?? detail;
    }
    throw new PerdureError('UNKNOWN_CALL', `The present run of session ${this.id} has no call ${callId}`);
  }

  /**
   * The bytes of a large result, of which the session holds the beginning and the end.
   *
   * @param value - the `value` of a result, or its digest.
   * @throws PerdureError `VALUE_NOT_FOUND` when it is no value of this session, or is gone; `INVALID_ARGUMENT` without
   * a store; `CHECKPOINT_CORRUPTION`; `SERVER_UNAVAILABLE` when the store cannot be used
   */
  async value(value: ValueRef | string): Promise<Value> {
    if (this.#values === undefined)
      throw invalid('values', 'this client has no store: write new Sessions(client, { values })');
    const digest = typeof value === 'string' ? value : value.digest;
    return new Values(this.#values, this.#client).get(digest, this.id);
  }

  /**
   * The session and the sub-agents below it, and everything in the tree that waits for a person, each with its path.
   * Sub-agents that have ended are listed while their calls are in the present run.
   */
  tree(): Promise<Tree> {
    return readTree((id) => new Session(this.#client, id).read(), this.id);
  }

  /** A sub-agent's session; `null` for this one. */
  #below(sessionId: string | undefined): Session | null {
    if (sessionId === undefined || sessionId === this.id) return null;
    if (sessionId.startsWith(`${this.id}/`)) return new Session(this.#client, sessionId);
    throw invalid('sessionId', `${sessionId} is no sub-agent of ${this.id}: decide in that session itself`);
  }

  /** The calls that wait for a person. */
  async approvals(): Promise<PendingCall[]> {
    return (await this.state()).pending;
  }

  /** Caps, and what is spent and reserved. @throws PerdureError `INVALID_ARGUMENT` for caps: `setBudget` takes them */
  async budget(...none: readonly never[]): Promise<BudgetView> {
    // Caps that were passed here would otherwise be ignored.
    refuseMore(none, 'budget', 'only reads. To set caps, call setBudget({ limits: { … } })');
    return this.#read(QUERY.budget, budgetView);
  }

  /** The plan that the model keeps. */
  async plan(): Promise<PlanStep[]> {
    return this.#read(QUERY.plan, ({ plan }) => plan);
  }

  /**
   * Sends a message. During a turn it is queued; with `mode: 'interrupt'` it ends the turn early. With `mode: 'aside'`,
   * while calls wait or run, it gets an answer of its own, which changes nothing that is pending; at other times it is
   * queued. A message with an id is taken once, however often it is sent, and however long ago. Default: a random id.
   * With `parts`, in the AI SDK's shape, it has files, which are stored first.
   *
   * @throws PerdureError `CONFLICT` when the id is another message's; `SESSION_CLOSED`, `SESSION_NOT_FOUND`,
   * `SESSION_FULL`, `TOO_LARGE`. Without an answer (`SERVER_UNAVAILABLE`, `NO_WORKER`, …) it may have been taken:
   * `details.messageId` is the id to repeat it with
   */
  async send(
    message: string | SendInput | PartsInput,
    ...none: readonly never[]
  ): Promise<{ phase: Phase; queued: number }> {
    // An id that was passed here would be ignored, and the message taken twice.
    refuseMore(none, 'message', 'takes one object: send({ text, id, mode })');
    const stores = { client: this.#client, values: this.#values };
    const input = withId(await storedMessage(message, this.id, stores));
    try {
      return await this.#update(UPDATE.send, input, 'message');
    } catch (error) {
      const { id: messageId } = input;
      const advice = `The session may have it already. Send it again with the id ${messageId}: the session takes an id once`;
      throw retryHint(error, advice, { sessionId: this.id, messageId });
    }
  }

  /** The messages that wait for the end of the turn, in the order in which the model will get them. */
  async queue(): Promise<QueuedMessage[]> {
    return this.#read(QUERY.queue, ({ inbox }) => inbox);
  }

  /**
   * Takes back a queued message: the model never sees it, and its id is not taken again. Repeating the call is safe.
   *
   * @throws PerdureError `MESSAGE_NOT_QUEUED` when the session has taken it, or never had it
   */
  async withdraw(
    messageId: string,
    options: { by?: string | undefined } = {},
  ): Promise<{ phase: Phase; queued: number }> {
    return this.#update(UPDATE.withdraw, { id: messageId, ...options }, 'messageId');
  }

  /**
   * Replaces the text and the files of a queued message. It keeps its id, its place and its pin.
   *
   * @throws PerdureError `MESSAGE_NOT_QUEUED` when the session has taken it, or never had it; `CONFLICT` when it was
   * withdrawn; `TOO_LARGE`
   */
  async editMessage(
    messageId: string,
    message: string | Pick<SendInput, 'text' | 'blocks' | 'by'> | Pick<PartsInput, 'parts' | 'by'>,
  ): Promise<{ phase: Phase; queued: number }> {
    const stores = { client: this.#client, values: this.#values };
    const stored = await storedMessage(message, this.id, stores);
    const input = typeof stored === 'string' ? { text: stored } : stored;
    return this.#update(UPDATE.editMessage, { ...input, id: messageId }, 'message');
  }

  /**
   * Decides on a call that waits for approval. The first decision wins. If the tool asks for several people, each of
   * them approves, and `status` stays `approval` until the last one has.
   *
   * @param call - the call from {@link Session.approvals}, or from {@link Session.tree}, which also has the calls of
   * sub-agents. The decision holds only for the call's arguments.
   * @param options - `by`: who decides. `verified`: your program has verified `by`; never take it from a client.
   * @returns once the decision is recorded; for an edit, once its arguments have passed the tool's schema.
   * @throws PerdureError `UNKNOWN_CALL`, `CALL_NOT_PENDING`, `DIGEST_MISMATCH`, `INVALID_TOOL_INPUT`, `FORBIDDEN` when
   * the tool's rules do not accept this person, or require a verified one
   */
  async decide(
    { callId, argsDigest, sessionId }: SeenCall & { sessionId?: string },
    decision: Decision,
    options: { by?: string; verified?: true } = {},
  ): Promise<{ callId: string; status: string }> {
    const below = this.#below(sessionId);
    if (below !== null) return below.decide({ callId, argsDigest }, decision, options);
    return this.#update(UPDATE.decide, { callId, argsDigest, decision, ...options }, 'decision');
  }

  /**
   * Records whether a call whose outcome is unknown has happened.
   *
   * @param call - the call from {@link Session.approvals} or {@link Session.tree}. The resolution holds only for that
   * dispatch and its arguments.
   * @throws PerdureError `UNKNOWN_CALL`, `CALL_NOT_PENDING`, `DISPATCH_MISMATCH`, `DIGEST_MISMATCH`
   */
  async resolve(
    { callId, argsDigest, dispatchNo, sessionId }: SeenDispatch & { sessionId?: string },
    resolution: Resolution,
    options: { by?: string; verified?: true } = {},
  ): Promise<{ callId: string; status: string }> {
    const below = this.#below(sessionId);
    if (below !== null) return below.resolve({ callId, argsDigest, dispatchNo }, resolution, options);
    const input = { callId, argsDigest, dispatchNo, resolution, ...options };
    return this.#update(UPDATE.resolve, input, 'resolution');
  }

  /** Sets caps, or lets the session finish with a summary: the caps are raised by what that can cost at most. */
  async setBudget(input: BudgetInput): Promise<{ phase: Phase; queued: number }> {
    return this.#update(UPDATE.budget, input, 'budget');
  }

  /**
   * Changes the transcript or the plan of a session at rest. Recorded with who and why.
   *
   * @param options - `id`: an edit with this id is made once in a run, however often it is sent.
   * @returns the phase, and the checkpoint that holds the edit.
   * @throws PerdureError `SESSION_BUSY` while a turn runs, or when the edit's basis has changed; `INVALID_ARGUMENT` for
   * a transcript that providers refuse
   */
  async edit(
    input: EditInput,
    options: { id?: string } = {},
  ): Promise<{ phase: Phase; queued: number; checkpointId: string }> {
    return this.#update(UPDATE.edit, input, 'edit', options.id);
  }

  /**
   * Stops the session from issuing anything, so that a successor can take over. {@link Session.resume} undoes it.
   *
   * @throws PerdureError `SESSION_BUSY` while a mutation is open
   */
  async seal(input: { by?: string; reason?: string } = {}): Promise<{ phase: Phase; queued: number }> {
    return this.#update(UPDATE.seal, input, 'seal');
  }

  /** Asks the session to issue nothing new. It takes effect when a worker is there. */
  async pause(input: PauseInput = {}): Promise<void> {
    await this.#signal(SIGNAL.pause, input);
  }

  /**
   * Continues after a pause or a wait.
   *
   * @param input - `pausedFor`: the reason of the pause to end. Nothing happens if the session is not paused, or is
   * paused for another reason.
   */
  async resume(input: { by?: string; pausedFor?: string } = {}): Promise<void> {
    await this.#signal(SIGNAL.resume, input);
  }

  /**
   * What an undo would do now: the effects of the session, also of its earlier runs, the last one first, and whether
   * the tool can undo each. Look at the list, then approve it: `cancel({ undo: { digest } })`. The effects of
   * sub-agents are on the list for a person, with the session in which to undo them.
   *
   * @throws PerdureError `CHECKPOINT_CORRUPTION` when earlier runs cannot be read
   */
  async undoPlan(): Promise<UndoPlan> {
    const read = (id: string): Promise<SessionState> => new Session(this.#client, id).snapshot();
    return this.#mapped(async () => readUndoPlan(this.#client, await this.snapshot(), read));
  }

  /**
   * Ends the session, after a mutation in flight has settled. With `undo`, the session first undoes its effects, the
   * last one first. Each undo is a call that a person approves, unless `undo` has the digest of
   * {@link Session.undoPlan}. An effect that cannot be undone waits for a person. `undo: false` stops an undo: the
   * effects that are left stay. For a session that has ended, call `sessions.undo`.
   */
  async cancel(input: CancelInput = {}): Promise<void> {
    const { undo = false } = input;
    const request: CancelRequest = undo === false ? input : { ...input, whole: true };
    await this.#signal(SIGNAL.cancel, request);
  }

  /**
   * Waits until the session ends, also over a rewind or reset. `output` is the checked value of the last answer, when its
   * agent has an `output` schema. A cancelled session, or one that ended with a summary because its budget was spent, has
   * none.
   *
   * @throws PerdureError `SESSION_CLOSED` with the reason when the session was terminated, or timed out, in Temporal;
   * `SESSION_NOT_FOUND`; `SERVER_UNAVAILABLE`
   */
  async result(): Promise<SessionResult<OUTPUT>> {
    const { workflowId, runId } = this.#run;
    return this.#mapped(
      async () => (await sessionResult(this.#client, workflowId, runId)) as SessionResult<OUTPUT>,
    );
  }

  /**
   * Streams the session live: what its history records, as parts with a cursor, and meanwhile the pieces of the answer
   * that the model writes. Ends when nothing is left to do, or as `until` says. It reads the history, so it needs no
   * worker and costs the session nothing. Streams of one session share what they read.
   *
   * @throws PerdureError `CHECKPOINT_NOT_FOUND` when the session did not go on from `since`; `SESSION_NOT_FOUND`;
   * `CHECKPOINT_CORRUPTION`; `INVALID_ARGUMENT`. After `SERVER_UNAVAILABLE`, and after `SESSION_BUSY` (a rewind has
   * ended the session and not started it again), stream again with the last cursor as `since`.
   */
  stream(options: StreamOptions = {}): AsyncGenerator<StreamPart> {
    return streamSession(this.#client, this.id, options, this.#live);
  }

  /** Returns when a worker answers for the session. @throws PerdureError that says why none does: `NO_WORKER`, … */
  async ping(): Promise<void> {
    await this.#mapped(() => this.#answer(QUERY.plan, undefined, ANSWER_MS));
  }

  /** The cursor of the present: {@link Session.stream} with this `since` yields what comes from now on. */
  async cursor(): Promise<string> {
    const { runId } = await describeSession(this.#client, this.id, this.#run.runId);
    return this.#mapped(() => presentCursor(this.#client, this.id, runId));
  }

  async #withEnd(view: SessionView, execution?: WorkflowExecutionDescription): Promise<SessionView> {
    if (view.status.kind !== 'active') return view;
    return withEnd(this.#client, view, execution ?? (await this.#mapped(() => this.#handle.describe())));
  }

  #read<T>(
    name: string,
    folded: (state: SessionState, execution: WorkflowExecutionDescription) => T,
    page?: PageInput,
  ): Promise<T> {
    const live = (answerMs: number): Promise<T> => this.#answer<T>(name, page, answerMs);
    return this.#mapped(() => readEither(this.#client, this.#run, live, folded));
  }

  /** Adds entries of earlier runs to a page. */
  #whole<K extends 'messages' | 'calls'>(
    which: K,
    input: PageInput,
    asked: Promise<RunPage<Piece[K][number]>>,
  ): Promise<Page<Piece[K][number]>> {
    return this.#mapped(async () => wholePage(this.#client, which, input, await asked));
  }

  #answer<T>(name: string, page: PageInput | undefined, answerMs: number): Promise<T> {
    return answered<T>(this.#client, this.#handle, { name, page, answerMs });
  }

  async #update<T>(name: string, input: object, field: string, updateId?: string): Promise<T> {
    const value = checkInput(name, input, field, LIMIT.update);
    return this.#mapped(async () => {
      await refusePlain(this.#client, this.id);
      return updated<T>(this.#client, this.#handle, { name, value, updateId });
    });
  }

  async #signal(name: string, input: object): Promise<void> {
    const value = checkInput(name, input, name, LIMIT.input);
    const sent = this.#signals.then(() =>
      this.#mapped(async () => {
        await checkHeadroom(this.#client, this.#handle, name);
        await this.#handle.signal(name, value);
      }),
    );
    this.#signals = sent.catch(() => undefined);
    await sent;
  }

  async #mapped<T>(call: () => Promise<T>): Promise<T> {
    const askedMs = Date.now();
    try {
      return await call();
    } catch (error) {
      const asked = { workflowId: this.id, what: `session ${this.id}`, askedMs };
      const known = await explained(this.#client, asked, sessionError(this.id, error));
      const ended = isPerdureError(known, 'SESSION_CLOSED') || isPerdureError(known, 'SESSION_NOT_FOUND');
      throw ended ? await endedError(this.#client, this.#run, known) : known;
    }
  }
}
