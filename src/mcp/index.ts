/** `perdure/mcp`: tools of MCP servers as tools of an agent. */
export { type McpToolOptions, type McpToolsOptions, mcpTools } from './mcp-tools.ts';
