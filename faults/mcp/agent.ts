/** The agent whose tools are those of an MCP server: one of each kind. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { DefinedTool, JsonObject, JsonValue, Verification } from 'perdure';
import { type McpToolOptions, mcpTools } from 'perdure/mcp';
import type { PaymentsClient } from '../../examples/payments/client.ts';
import { ALSO_READ, TOOL, type ToolKind } from '../story.ts';
import { type AgentPlan, urlOf } from './plan.ts';

export function mcpToolsOf(plan: AgentPlan, service: PaymentsClient): Promise<Record<string, DefinedTool>> {
  const { timeout, settle } = plan;
  const verify = async ({ tag }: JsonObject): Promise<Verification<JsonValue>> => {
    const found = await service.find(tag as string);
    return found.outcome === 'absent' ? found : { ...found, output: { ...found.output } };
  };
  const options: Readonly<Record<ToolKind, McpToolOptions>> = {
    read: { effect: 'read' },
    idempotent: { effect: 'idempotent' },
    mutate: { verify, confirm: true, idempotency: { scope: 'message' } },
    blind: { idempotency: { scope: 'message' } },
    global: { verify, confirm: true, idempotency: { scope: 'global', ttl: '1h' } },
  };
  // Only the lab restarts such a server, and that takes longer than three attempts.
  const limits = { timeout, settle, ...(plan.port === undefined ? {} : { maxAttempts: 10 }) };
  const kinds = Object.entries(options).map(
    ([kind, each]) => [TOOL[kind as ToolKind], { ...each, ...limits }] as const,
  );
  return mcpTools({
    name: 'payments',
    transport: () =>
      plan.port === undefined
        ? new StdioClientTransport({
            command: process.execPath,
            args: ['--import', 'tsx', plan.program, JSON.stringify(plan)],
          })
        : new StreamableHTTPClientTransport(new URL(urlOf(plan.port))),
    tools: { ...Object.fromEntries(kinds), [ALSO_READ]: { effect: 'read', ...limits } },
  });
}
