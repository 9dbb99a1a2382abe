/** Calls that are questions to a person. */
import type { ToolCall } from '../contract/calls.ts';
import { canonicalJson, defined } from '../contract/json.ts';
import type { ToolManifest } from '../contract/manifest.ts';
import type { PendingCall } from '../contract/views.ts';

/** What a person sees of a question; nothing for another call. */
export function questionOf(
  tool: ToolManifest | undefined,
  { args, status }: Pick<ToolCall, 'args' | 'status'>,
): Pick<PendingCall, 'question'> {
  if (tool?.question === undefined || status.kind !== 'approval') return {};
  const { question, options } = (args ?? {}) as { question?: unknown; options?: unknown };
  const texts = Array.isArray(options) ? options.filter((each) => typeof each === 'string') : [];
  return {
    question: {
      text: typeof question === 'string' ? question : canonicalJson(args),
      ...defined({ options: texts.length === 0 ? undefined : texts }),
      ...tool.question,
    },
  };
}
