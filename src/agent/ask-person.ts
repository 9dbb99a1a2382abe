import type { Duration } from '@temporalio/common';
import type { FlexibleSchema } from 'ai';
import * as z from 'zod';
import type { JsonValue } from '../contract/json.ts';
import { type DefinedTool, defineTool } from './define-tool.ts';

/** Options of {@link askPerson}. */
export interface AskPersonOptions {
  /** When the model should ask. Default: when it needs to know something that only a person can tell. */
  description?: string;
  /**
   * The schema of the answer, an object. The console shows it as a form. It is not enforced: the model sees any answer
   * as it is. Default: any text or JSON.
   */
  answer?: FlexibleSchema;
  /** How long a question waits. Then the model gets `otherwise`, or reads that nobody answered. Default: for ever. */
  expires?: Duration;
  /** The answer when nobody gives one in time, or when a person approves the question without an answer. */
  otherwise?: JsonValue;
}

/** A question of the model. */
export interface Question {
  question: string;
  /** Answers to choose from. */
  options?: string[] | undefined;
}

/**
 * A tool with which the model asks a person. A question waits in the inbox like an approval, without holding a process,
 * for as long as it takes. The decision `respond` answers it: its output is the tool's result.
 *
 * @example
 * ```ts
 * import { askPerson, defineAgent } from 'perdure';
 * import * as z from 'zod';
 *
 * export const planner = defineAgent({
 *   name: 'planner',
 *   model: 'openai:gpt-5',
 *   instructions: 'Plan the trip.',
 *   tools: {
 *     ask_person: askPerson({ expires: '2 days', otherwise: 'Decide yourself.' }),
 *     ask_dates: askPerson({
 *       description: 'Ask for the dates of the trip.',
 *       answer: z.object({ from: z.iso.date(), nights: z.int() }),
 *     }),
 *   },
 * });
 * ```
 */
export function askPerson({
  description,
  answer,
  expires,
  otherwise,
}: AskPersonOptions = {}): DefinedTool<Question, JsonValue> {
  const tool = defineTool({
    description:
      description ??
      'Ask a person what only a person can tell or decide. The answer may take days: ask once.',
    inputSchema: z.object({ question: z.string().min(1), options: z.array(z.string()).optional() }),
    effect: 'read',
    needsApproval: true,
    ...(expires === undefined
      ? {}
      : { approval: { expires, onExpiry: otherwise === undefined ? 'reject' : 'approve' } as const }),
    // Runs when a person approves the question without an answer, or when it expires.
    execute: () => otherwise ?? 'Nobody gave an answer.',
  });
  return { ...tool, question: { ...(answer && { answer }), ...(otherwise !== undefined && { otherwise }) } };
}
