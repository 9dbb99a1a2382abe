/** One session, from outside. */
import { type Client, isGrpcDeadlineError, type WorkflowHandle } from '@temporalio/client';
import type { Decision, Resolution, SeenCall, SeenDispatch } from '../contract/calls.ts';
import type { EditInput } from '../contract/edit.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { ASK_AGAIN } from '../contract/failure.ts';
import type { BudgetInput, PauseInput, SendInput, SessionResult } from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import { QUERY, SIGNAL, UPDATE } from '../contract/names.ts';
import type { Phase, PlanStep, SessionState } from '../contract/state.ts';
import type {
  BudgetView,
  CallsPage,
  PageInput,
  PendingCall,
  SessionView,
  TooLarge,
  TranscriptPage,
} from '../contract/views.ts';
import { budgetView, pageOf, sessionView } from '../session/views.ts';
import { isUnprocessed, retryHint, sessionError } from '../temporal/errors.ts';
import { explained } from '../temporal/unanswered.ts';
import { checkHeadroom, checkInput, refuseMore } from './checks.ts';
import { endedError, withEnd } from './ended.ts';
import { describeSession, readEither } from './read-session.ts';
import { withId } from './start-options.ts';
import { type StreamPart, streamSession } from './stream.ts';

/** How long an update or a query may wait for a worker, in milliseconds. */
const ANSWER_MS = 15_000;
/** How long a query or an update that came at a bad moment rests, in milliseconds. */
const ASK_AGAIN_MS = 100;
/**
 * How long a worker may be silent before another is asked, at the first times, in milliseconds. One that is frozen takes a
 * query and never answers; one that has a long history to read needs longer, and is asked last.
 */
const SILENT_MS = [3_000, 3_000];

/** A state and where it was read. */
export interface SessionReading {
  state: SessionState;
  /** What {@link Session.state} returns. */
  view: SessionView;
  /** `history`: no worker answered; what none has taken yet is not in the state. */
  source: 'worker' | 'history';
  /** Temporal's own word for the run: `running`, `completed`, `terminated`, … */
  run: string;
}

/**
 * A handle of a session. Inputs are checked for size and unknown names before they are sent; a refusal is a {@link PerdureError}
 * with the session's own code, `SESSION_FULL` when its history has no room for more. Safe to keep and to make
 * anew: it holds nothing of the session.
 */
export class Session {
  /** The session's id, which is the workflow's. */
  readonly id: string;
  readonly #client: Client;
  /** Signals go in the order of their calls, though each looks at the history first. */
  #signals: Promise<void> = Promise.resolve();
  readonly #run: { workflowId: string; runId?: string };
  readonly #handle: WorkflowHandle;

  /** @param runId - asks this run only, and no successor of it. */
  constructor(client: Client, id: string, runId?: string) {
    this.id = id;
    this.#client = client;
    this.#run = { workflowId: id, ...defined({ runId }) };
    this.#handle = client.workflow.getHandle(id, runId);
  }

  /**
   * The session at a glance. As all reads, it comes from a worker, or from the history when none answers. From the
   * history it lacks what was sent since the last worker looked.
   *
   * @throws PerdureError `SESSION_NOT_FOUND`, `SERVER_UNAVAILABLE`, `CHECKPOINT_CORRUPTION`
   */
  async state(): Promise<SessionView> {
    return this.#withEnd(await this.#read(QUERY.state, sessionView));
  }

  /** The whole state, as in a checkpoint. */
  async snapshot(): Promise<SessionState> {
    return this.#read(QUERY.snapshot, (state) => state);
  }

  /** The whole state, with where it was read and Temporal's word for the run. */
  async read(): Promise<SessionReading> {
    const execution = await describeSession(this.#client, this.id);
    let source: SessionReading['source'] = 'worker';
    const state = await this.#read(QUERY.snapshot, (folded) => {
      source = 'history';
      return folded;
    });
    const view = await withEnd(this.#client, sessionView(state), execution);
    return { state, view, source, run: execution.status.name.toLowerCase() };
  }

  /** Messages, the newest page by default. */
  async transcript(page: PageInput = {}): Promise<TranscriptPage> {
    return this.#read(QUERY.transcript, ({ transcript }) => pageOf(transcript, page), page);
  }

  /** The tool-call log, the newest page by default. */
  async calls(page: PageInput = {}): Promise<CallsPage> {
    return this.#read(QUERY.calls, ({ calls }) => pageOf(calls, page), page);
  }

  /** The calls that wait for a person. */
  async approvals(): Promise<PendingCall[]> {
    return (await this.state()).pending;
  }

  /** Caps, spent and reserved. @throws PerdureError `INVALID_ARGUMENT` for caps: {@link Session.setBudget} takes them */
  async budget(...none: readonly never[]): Promise<BudgetView> {
    // Whoever gave caps, and was told some, would take them for set.
    refuseMore(none, 'budget', 'reads, and sets nothing. To set caps, call setBudget({ limits: { … } })');
    return this.#read(QUERY.budget, budgetView);
  }

  /** The plan that the model keeps. */
  async plan(): Promise<PlanStep[]> {
    return this.#read(QUERY.plan, ({ plan }) => plan);
  }

  /**
   * Sends a message. It is queued during a turn, or with `mode: 'interrupt'` ends the turn early. Sent twice
   * with one `id`, it is taken once; without one it gets a random one.
   *
   * @throws PerdureError `CONFLICT` when the id is another message's; `SESSION_CLOSED`, `SESSION_NOT_FOUND`,
   * `SESSION_FULL`, `TOO_LARGE`; the codes of {@link Session.state} and `SERVER_UNAVAILABLE`, when it may have been taken all the same:
   * their `details.messageId` is the id to send it again with
   */
  async send(
    message: string | SendInput,
    ...none: readonly never[]
  ): Promise<{ phase: Phase; queued: number }> {
    // Whoever gave an id there, and sent again, would have the message taken twice.
    refuseMore(none, 'message', 'takes its options in one object: send({ text, id, mode })');
    const input = withId(message);
    try {
      return await this.#update(UPDATE.send, input, 'message');
    } catch (error) {
      const { id: messageId } = input;
      const advice = `The message may have been taken all the same: sent again with the id ${messageId}, it is taken once`;
      throw retryHint(error, advice, { sessionId: this.id, messageId });
    }
  }

  /**
   * Decides on a call that waits for approval. The first decision wins.
   *
   * @param call - the call as it was looked at, from {@link Session.approvals}. The decision holds only for those
   * arguments.
   * @param options - who decides.
   * @returns once the decision is recorded; for an edit, once its arguments have passed the tool's schema.
   * @throws PerdureError `UNKNOWN_CALL`, `CALL_NOT_PENDING`, `DIGEST_MISMATCH`, `INVALID_TOOL_INPUT`
   */
  async decide(
    { callId, argsDigest }: SeenCall,
    decision: Decision,
    options: { by?: string } = {},
  ): Promise<{ callId: string; status: string }> {
    return this.#update(UPDATE.decide, { callId, argsDigest, decision, ...options }, 'decision');
  }

  /**
   * Says what became of a call whose outcome is unknown.
   *
   * @param call - the call as it was looked at, from {@link Session.approvals}. The resolution holds only for that
   * dispatch and those arguments. If the call has been dispatched again since, it is refused.
   * @param options - who says so.
   * @throws PerdureError `UNKNOWN_CALL`, `CALL_NOT_PENDING`, `DISPATCH_MISMATCH`, `DIGEST_MISMATCH`
   */
  async resolve(
    { callId, argsDigest, dispatchNo }: SeenDispatch,
    resolution: Resolution,
    options: { by?: string } = {},
  ): Promise<{ callId: string; status: string }> {
    const input = { callId, argsDigest, dispatchNo, resolution, ...options };
    return this.#update(UPDATE.resolve, input, 'resolution');
  }

  /** Sets caps, or lets the session finish with a summary whose worst case is added to them. */
  async setBudget(input: BudgetInput): Promise<{ phase: Phase; queued: number }> {
    return this.#update(UPDATE.budget, input, 'budget');
  }

  /**
   * Changes the past that the model sees, or the plan, of a session at rest. Recorded with who and why.
   *
   * @param options - `id`: what is sent again with it is the same edit, made once and answered as it was then; it holds
   * for one run, and a refusal leaves no trace of it.
   * @returns what the session does then, and the checkpoint that holds the edit.
   * @throws PerdureError `SESSION_BUSY` while a turn runs, or when what was looked at has changed;
   * `INVALID_ARGUMENT` for a transcript that no provider takes
   */
  async edit(
    input: EditInput,
    options: { id?: string } = {},
  ): Promise<{ phase: Phase; queued: number; checkpointId: string }> {
    return this.#update(UPDATE.edit, input, 'edit', options.id);
  }

  /**
   * Makes the session issue nothing more, so that a successor can take over; {@link Session.resume} takes it back.
   *
   * @throws PerdureError `SESSION_BUSY` while a mutation is open
   */
  async seal(input: { by?: string; reason?: string } = {}): Promise<{ phase: Phase; queued: number }> {
    return this.#update(UPDATE.seal, input, 'seal');
  }

  /** Asks the session to issue nothing new. Works without a worker: it takes effect when one is there. */
  async pause(input: PauseInput = {}): Promise<void> {
    await this.#signal(SIGNAL.pause, input);
  }

  /** Goes on after a pause or a wait. */
  async resume(input: { by?: string } = {}): Promise<void> {
    await this.#signal(SIGNAL.resume, input);
  }

  /** Ends the session, after a mutation in flight has settled. */
  async cancel(input: { by?: string; reason?: string } = {}): Promise<void> {
    await this.#signal(SIGNAL.cancel, input);
  }

  /** Waits until the session ends. */
  async result(): Promise<SessionResult> {
    return this.#mapped(async () => (await this.#handle.result()) as SessionResult);
  }

  /**
   * The session live: text as the model writes it, resets when an attempt is repeated, and phases. Ends when
   * the session waits for somebody or is closed. It reads and never writes: no history, no cost to the session
   * but its heartbeats. Unlike reads it needs a worker.
   *
   * @throws PerdureError `NO_WORKER`
   */
  stream(options: { signal?: AbortSignal } = {}): AsyncGenerator<StreamPart> {
    const live = {
      id: this.id,
      state: async () => this.#withEnd(await this.#query<SessionView>(QUERY.state)),
      transcript: (page: PageInput) => this.#query<TranscriptPage>(QUERY.transcript, page),
      calls: (page: PageInput) => this.#query<CallsPage>(QUERY.calls, page),
    };
    return streamSession(this.#client, live, options);
  }

  async #withEnd(view: SessionView): Promise<SessionView> {
    if (view.status.kind !== 'active') return view;
    return withEnd(this.#client, view, await this.#mapped(() => this.#handle.describe()));
  }

  #read<T>(name: string, folded: (state: SessionState) => T, page?: PageInput): Promise<T> {
    const live = (answerMs: number): Promise<T> => this.#answer<T>(name, page, answerMs);
    return this.#mapped(() => readEither(this.#client, this.id, live, folded));
  }

  #query<T>(name: string, page?: PageInput): Promise<T> {
    return this.#mapped(() => this.#answer<T>(name, page, ANSWER_MS));
  }

  async #answer<T>(name: string, page: PageInput | undefined, answerMs: number): Promise<T> {
    const ask = (): Promise<T | TooLarge> => this.#handle.query(name, ...(page === undefined ? [] : [page]));
    const deadline = Date.now() + answerMs;
    let answer: T | TooLarge;
    try {
      answer = await this.#client.withDeadline(deadline, () => this.#askUntil(deadline, ask));
    } catch (error) {
      throw sessionError(this.id, error);
    }
    if (!isTooLarge(answer)) return answer;
    const { size, limit } = answer.tooLarge;
    throw new PerdureError(
      'TOO_LARGE',
      `${name} of session ${this.id} is ${size} bytes of JSON, a query may answer ${limit}: read it with the checkpoint saver`,
      { details: { field: name, size, limit } },
    );
  }

  /** Asks again while a query comes between an event and its workflow task, as after a worker's death, or is swallowed. */
  async #askUntil<T>(deadline: number, ask: () => Promise<T>): Promise<T> {
    for (let silences = 0; ; ) {
      const answerBy = Math.min(deadline, Date.now() + (SILENT_MS[silences] ?? ANSWER_MS));
      try {
        return await this.#client.withDeadline(answerBy, ask);
      } catch (error) {
        if (isGrpcDeadlineError(error) && answerBy < deadline) {
          silences += 1;
          continue;
        }
        if (!(error instanceof Error) || !error.message.includes(ASK_AGAIN)) throw error;
        const { status } = await this.#handle.describe();
        if (status.name !== 'RUNNING') {
          throw new PerdureError(
            'SESSION_CLOSED',
            `Session ${this.id} was ended from outside before it saw its last events: read it with the checkpoint saver`,
            { cause: error },
          );
        }
        if (Date.now() > deadline) {
          throw new PerdureError(
            'NO_WORKER',
            `No worker has taken up the last events of session ${this.id} yet. Ask again, or start one: perdure worker <module>`,
            { cause: error },
          );
        }
        await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
      }
    }
  }

  async #update<T>(name: string, input: object, field: string, updateId?: string): Promise<T> {
    const value = checkInput(name, input, field, LIMIT.update);
    const deadline = Date.now() + ANSWER_MS;
    const options = { args: [value] as [unknown], ...defined({ updateId }) };
    const ask = (): Promise<T> => this.#handle.executeUpdate<T, [unknown]>(name, options);
    return this.#mapped(() =>
      this.#client.withDeadline(deadline, async () => {
        for (;;) {
          try {
            return await ask();
          } catch (error) {
            if (!isUnprocessed(error) || Date.now() > deadline) throw error;
            await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
          }
        }
      }),
    );
  }

  async #signal(name: string, input: object): Promise<void> {
    const value = checkInput(name, input, name, LIMIT.input);
    const sent = this.#signals.then(() =>
      this.#mapped(async () => {
        await checkHeadroom(this.#handle, name);
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

function isTooLarge(answer: unknown): answer is TooLarge {
  return typeof answer === 'object' && answer !== null && 'tooLarge' in answer;
}
