/** Questions that tools ask in the middle of a call. */
import type { QuestionError } from '../agent/index.ts';
import type { ToolQuestion } from '../contract/calls.ts';
import { isPerdureError } from '../contract/errors.ts';
import { defined, jsonSize, toJson } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';

/** The question that a tool has thrown, or `null` for any other error. Too large a question counts as another error. */
export function questionIn(error: unknown): ToolQuestion | null {
  if (!isPerdureError(error, 'NOT_ATTEMPTED') || error.name !== 'QuestionError') return null;
  const { message: text, answer, state } = error as QuestionError;
  const question: ToolQuestion = { text, ...defined({ answer, state }) };
  return jsonSize(toJson(question)) > LIMIT.question ? null : question;
}
