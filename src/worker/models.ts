import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { ModelRegistry } from '../agent/index.ts';

/** Prefixes of model names that the environment's endpoint answers. */
const PREFIX = /^(openai-compatible|openai|env):/;

/**
 * The models of an OpenAI-compatible endpoint that the environment names, or `undefined`: `OPENAI_BASE_URL`
 * (Ollama, vLLM, any gateway) and `OPENAI_API_KEY`. It answers names like `openai:gpt-5` or `env:llama3.3`.
 */
export function modelsFromEnvironment(env: NodeJS.ProcessEnv = process.env): ModelRegistry | undefined {
  // Compose and the like pass what is not set as an empty text.
  const apiKey = env['OPENAI_API_KEY'] || undefined;
  const baseURL = env['OPENAI_BASE_URL'] || (apiKey === undefined ? undefined : 'https://api.openai.com/v1');
  if (baseURL === undefined) return undefined;
  const provider = createOpenAICompatible({
    name: 'openai-compatible',
    baseURL,
    includeUsage: true,
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  return { languageModel: (id) => provider.languageModel(id.replace(PREFIX, '')) };
}
