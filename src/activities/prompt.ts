/** The transcript as a language model's prompt, and the manifest's tools as its tools. */
import type { LanguageModelV3FunctionTool, LanguageModelV3Message } from '@ai-sdk/provider';
import type { Manifest } from '../contract/manifest.ts';
import type { Block, Message } from '../contract/messages.ts';
import { PLAN_DESCRIPTION, PLAN_SCHEMA, PLAN_TOOL } from '../contract/plan.ts';

type Part<ROLE extends LanguageModelV3Message['role']> = Exclude<
  Extract<LanguageModelV3Message, { role: ROLE }>['content'],
  string
>[number];

/** Messages as the AI SDK's models take them; what providers need back of their own travels as provider options. */
export function toPrompt(messages: readonly Message[]): LanguageModelV3Message[] {
  return messages.map((message): LanguageModelV3Message => {
    switch (message.role) {
      case 'user':
        return {
          role: 'user',
          content: message.blocks.flatMap((b) => (b.kind === 'text' ? [{ type: 'text', text: b.text }] : [])),
        };
      case 'assistant':
        return { role: 'assistant', content: message.blocks.flatMap(assistantPart) };
      case 'tool':
        return { role: 'tool', content: message.blocks.flatMap(toolPart) };
      default:
        return message.role satisfies never;
    }
  });
}

function assistantPart(block: Block): Part<'assistant'>[] {
  const options =
    'metadata' in block && block.metadata !== undefined ? { providerOptions: block.metadata as never } : {};
  switch (block.kind) {
    case 'text':
      return [{ type: 'text', text: block.text, ...options }];
    case 'reasoning':
      return [{ type: 'reasoning', text: block.text, ...options }];
    case 'tool_call':
      return [
        { type: 'tool-call', toolCallId: block.id, toolName: block.name, input: block.args, ...options },
      ];
    case 'tool_result':
      return [];
    default:
      return block satisfies never;
  }
}

function toolPart(block: Block): Part<'tool'>[] {
  if (block.kind !== 'tool_result') return [];
  const { call_id: toolCallId, name: toolName, content, is_error: isError } = block;
  const output =
    typeof content === 'string'
      ? { type: isError ? ('error-text' as const) : ('text' as const), value: content }
      : { type: isError ? ('error-json' as const) : ('json' as const), value: content };
  return [{ type: 'tool-result', toolCallId, toolName, output }];
}

/** The tools as schemas only: calls come back to the session, and are checked against the tool's own schema. */
export function toTools(manifest: Manifest): LanguageModelV3FunctionTool[] {
  const tools = Object.values(manifest.tools).map(({ name, description, inputSchema }) =>
    functionTool(name, description, inputSchema),
  );
  if (manifest.plan) tools.push(functionTool(PLAN_TOOL, PLAN_DESCRIPTION, PLAN_SCHEMA));
  return tools;
}

function functionTool(
  name: string,
  description: string,
  inputSchema: LanguageModelV3FunctionTool['inputSchema'],
): LanguageModelV3FunctionTool {
  return { type: 'function', name, description, inputSchema };
}
