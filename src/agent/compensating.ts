import { asSchema, jsonSchema } from '@ai-sdk/provider-utils';
import type { EffectRef } from '../contract/calls.ts';
import { defined } from '../contract/json.ts';
import type { CompensationContext } from './compensation.ts';
import type { DefinedTool } from './define-tool.ts';
import type { ToolContext } from './tool-context.ts';

/** The arguments of a compensation: the input and the output of the effect. */
interface Undone {
  input: unknown;
  output: unknown;
}

/** Makes a tool of a tool's compensation. Its arguments are the input and the output of the effect. */
export function compensating(tool: DefinedTool, effect: EffectRef): DefinedTool | undefined {
  const { compensate, inputSchema, context } = tool;
  if (compensate === undefined) return undefined;
  const withEffect = (given: ToolContext): CompensationContext => ({ ...given, effect });
  const compensation: DefinedTool = {
    perdure: 'tool',
    inputSchema: jsonSchema<unknown>(
      { type: 'object' },
      {
        validate: async (value) => {
          const { input, output } = value as Undone;
          const checked = (await asSchema(inputSchema).validate?.(input)) ?? { success: true, value: input };
          return checked.success ? { success: true, value: { input: checked.value, output } } : checked;
        },
      },
    ),
    ...defined({ context }),
    execute: (value, given) => {
      const { input, output } = value as Undone;
      return compensate.execute(input, output, withEffect(given));
    },
  };
  if (compensate.verify === undefined) return compensation;
  return {
    ...compensation,
    verify: async (value, given) => {
      const { input, output } = value as Undone;
      return (await compensate.verify?.(input, output, withEffect(given))) ?? { outcome: 'unknown' };
    },
  };
}
