import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { type DefinedAgent, withSubAgents } from '../../agent/index.ts';
import { openAIBody } from '../../worker/openai-body.ts';
import { breakpoint } from './breakpoints.ts';

/** Returns the agents with the scripted endpoint in place of each model. Names and prices stay. */
export function scriptedAgents(agents: readonly DefinedAgent[], modelUrl: string): DefinedAgent[] {
  const provider = createOpenAICompatible({
    name: 'scripted',
    baseURL: modelUrl,
    includeUsage: true,
    fetch: async (url, init) => {
      await breakpoint('model request');
      return fetch(url, init);
    },
    transformRequestBody: (body) => openAIBody(body, false),
  });
  return withSubAgents(agents).map((agent) => ({
    ...agent,
    models: agent.models.map((choice) => ({
      ...choice,
      model: provider.languageModel(typeof choice.model === 'string' ? choice.model : choice.model.modelId),
    })),
  }));
}
