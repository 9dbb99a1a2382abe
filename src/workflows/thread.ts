/** A thread of checkpoints that is not a session, and the segments that hold its sealed part. */
import {
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  makeContinueAsNewFunc,
  ParentClosePolicy,
  setHandler,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { isPerdureError } from '../contract/errors.ts';
import { parseInput } from '../contract/inputs.ts';
import { jsonSize } from '../contract/json.ts';
import { assertSize, tooLarge } from '../contract/limits.ts';
import {
  type DeleteResult,
  type FindInput,
  type Found,
  type Garbage,
  garbageSchema,
  type PageQuery,
  type PageResult,
  type SegmentInput,
  type StepsResult,
  segmentId,
  THREAD_BUSY,
  THREAD_EMPTY,
  THREAD_LIMIT,
  THREAD_MEMO,
  THREAD_QUERY,
  THREAD_UPDATE,
  type ThreadInput,
  type ThreadPut,
  type ThreadPutResult,
  type ThreadPutStep,
  type ThreadPutStepResult,
  type ThreadWriteResult,
  type ThreadWrites,
  threadPutSchema,
  threadPutStepSchema,
  threadWorkflowId,
  threadWritesSchema,
} from '../contract/thread.ts';
import { ThreadState } from '../thread/thread-state.ts';
import { failure } from './failure.ts';

/** How long a deleted thread stays, so that it can refuse writes that began before its deletion. */
const EMPTY_FOR = '1 day';

/**
 * One thread. Writes are updates; their validators refuse them before anything is recorded. Reads are queries. When a
 * run holds enough, it seals what it holds in a segment and continues as new with the index.
 *
 * A Temporal cancellation is ignored: a thread ends when it is deleted.
 */
export async function checkpointThread(input: ThreadInput): Promise<void> {
  const { runId, workflowId } = workflowInfo();
  if (workflowId !== threadWorkflowId(input.threadId)) {
    const message = `${workflowId} is not the workflow of thread ${input.threadId}`;
    throw ApplicationFailure.nonRetryable(message, 'INVALID_ARGUMENT');
  }
  const thread = new ThreadState(input);
  registerHandlers(thread, runId);
  await CancellationScope.nonCancellable(async () => {
    const due = (): boolean => thread.deleted || thread.full || workflowInfo().continueAsNewSuggested;
    while (!due()) {
      if (!thread.empty) await condition(() => due() || thread.empty);
      else if (!(await condition(() => !thread.empty || due(), EMPTY_FOR))) return;
    }
    if (thread.holds) {
      await startChild(checkpointSegment, {
        workflowId: segmentId(runId),
        args: [thread.seal()],
        parentClosePolicy: ParentClosePolicy.ABANDON,
        staticSummary: `a sealed segment of ${thread.threadId}`.slice(0, 200),
      });
      thread.sealed(runId);
    }
    await condition(allHandlersFinished);
    const next = thread.carry();
    const goOn = makeContinueAsNewFunc<typeof checkpointThread>({ memo: { [THREAD_MEMO]: next.epoch } });
    await goOn(next);
  });
}

/**
 * A sealed segment. It only holds its input, which readers take from its history. It never closes by itself, because
 * the namespace's retention removes closed workflows. It ignores signals. Since anybody may send some, it continues as
 * new with the same input before there are so many that Temporal would end it.
 */
export async function checkpointSegment(input: SegmentInput): Promise<void> {
  await CancellationScope.nonCancellable(async () => {
    await condition(() => workflowInfo().continueAsNewSuggested);
    await continueAsNew<typeof checkpointSegment>(input);
  });
}

function registerHandlers(thread: ThreadState, runId: string): void {
  const now = (): string => new Date().toISOString();
  const write = <Input, Result>(
    name: string,
    schema: Parameters<typeof parseInput<Input>>[0],
    check: (input: Input) => void,
    apply: (input: Input) => Result | Promise<Result>,
    description: string,
  ): void =>
    setHandler(defineUpdate<Result, [Input]>(name), apply, {
      validator: (raw: unknown) => {
        // Checked before it is recorded: an update that is too large would end the workflow.
        refusing(() => assertSize(name, raw, THREAD_LIMIT.entry));
        const parsed = parseInput(schema, raw);
        if (!parsed.ok) {
          const { message, field } = parsed;
          throw failure({ code: 'INVALID_ARGUMENT', message, details: { field } });
        }
        refusing(() => check(raw as Input));
      },
      description,
    });
  const room = (input: unknown): void => {
    const size = jsonSize(input);
    if (size > THREAD_LIMIT.write) throw failure(tooLarge('writes', size, THREAD_LIMIT.write));
    if (thread.hasRoom(size)) return;
    const message = `Thread ${thread.threadId} seals a segment`;
    throw ApplicationFailure.nonRetryable(message, THREAD_BUSY);
  };
  write<ThreadPut, ThreadPutResult>(
    THREAD_UPDATE.put,
    threadPutSchema,
    (put) => {
      thread.validatePut(put);
      room(put);
    },
    (put) => thread.put(put, now()),
    'Stores a checkpoint: {epoch, id, state, parent_id, metadata}',
  );
  write<ThreadPutStep, ThreadPutStepResult>(
    THREAD_UPDATE.putStep,
    threadPutStepSchema,
    (step) => {
      thread.validateStep(step);
      room(step);
    },
    (step) => thread.putStep(step, now()),
    'Stores a step: {epoch, key, value}',
  );
  write<ThreadWrites, ThreadWriteResult[]>(
    THREAD_UPDATE.writes,
    threadWritesSchema,
    room,
    (writes) => thread.writeAll(writes, now()),
    'Stores several, each by itself: {writes: [{put: {…}}, {step: {…}}]}',
  );
  write<Garbage, DeleteResult>(
    THREAD_UPDATE.delete,
    garbageSchema,
    () => {
      // Refused without a record, because a run takes a limited number of updates.
      if (thread.empty)
        throw ApplicationFailure.nonRetryable(`Thread ${thread.threadId} is empty`, THREAD_EMPTY);
    },
    async () => {
      const result = thread.delete(runId);
      // Answer only when the segment has started, so that the caller finds it.
      await condition(() => !thread.sealing);
      return result;
    },
    'Forgets everything, and returns what the caller must delete: {runs: [], contents: []}',
  );
  write<Garbage, void>(
    THREAD_UPDATE.swept,
    garbageSchema,
    () => undefined,
    (garbage) => thread.swept(garbage),
    'The caller has deleted this: {runs, contents}',
  );
  setHandler(defineQuery<Found, [FindInput]>(THREAD_QUERY.find), (query) => thread.find(query), {
    description: 'An entry: {kind: checkpoint|step, id}, or the latest checkpoint',
  });
  setHandler(defineQuery<PageResult, [PageQuery]>(THREAD_QUERY.page), (query) => thread.page(query), {
    description: 'Checkpoints, newest first: {before, limit}',
  });
  setHandler(defineQuery<StepsResult>(THREAD_QUERY.steps), () => thread.steps(), {
    description: 'All steps',
  });
}

/** Converts a refusal that is thrown to a failure. */
function refusing(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (isPerdureError(error)) throw failure(error);
    throw error;
  }
}
