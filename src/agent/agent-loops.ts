import type { DefinedTool } from './define-tool.ts';

interface WithTools {
  readonly tools: Readonly<Record<string, DefinedTool>>;
}

/** Why the tools of an agent would lead back to it, or `null`. Loops through other workers are found at run time. */
export function loopProblem(name: string, tools: WithTools['tools']): string | null {
  const walk = (own: typeof tools, path: string[]): string | null => {
    for (const [toolName, { agent }] of Object.entries(own)) {
      if (agent === undefined) continue;
      const way = [...path, toolName];
      if (agent.name === name) {
        return `tools.${way.join(' > ')} leads back to ${name}: an agent cannot be its own sub-agent`;
      }
      const found = agent.definition as WithTools | undefined;
      const problem = found === undefined ? null : walk(found.tools, way);
      if (problem !== null) return problem;
    }
    return null;
  };
  return walk(tools, []);
}
