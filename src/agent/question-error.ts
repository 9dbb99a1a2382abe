import type { JsonObject, JsonValue } from '../contract/json.ts';
import { NotAttemptedError } from './define-tool.ts';

/**
 * A tool throws this error to ask a person something before it does anything. The question waits in the inbox, without
 * holding a process. A person answers with the decision `respond`. Then the tool runs again, as another dispatch of the
 * same call, and finds the answer in `answers` of its context. A call may ask ten times. A call of scope `global`
 * cannot ask, and neither can a compensation.
 *
 * For a mutation the error means, like {@link NotAttemptedError}, that nothing has happened.
 *
 * @example
 * ```ts
 * import { defineTool, QuestionError } from 'perdure';
 * import * as z from 'zod';
 *
 * export const book = defineTool({
 *   inputSchema: z.object({ flight: z.string() }),
 *   execute: ({ flight }, { answers }) => {
 *     const [seat] = answers;
 *     if (seat === undefined) throw new QuestionError('Which seat?');
 *     return `booked ${flight}, seat ${String(seat.output)}`;
 *   },
 * });
 * ```
 */
export class QuestionError extends NotAttemptedError {
  override readonly name: string = 'QuestionError';
  /** JSON Schema of the answer, for forms. Answers are not checked against it. */
  readonly answer: JsonObject | undefined;
  /** What the tool gets back with the answer. */
  readonly state: JsonValue | undefined;

  constructor(question: string, options: { answer?: JsonObject; state?: JsonValue; cause?: unknown } = {}) {
    super(question, { retryable: false, cause: options.cause });
    this.answer = options.answer;
    this.state = options.state;
  }
}
