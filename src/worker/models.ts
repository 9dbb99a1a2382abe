import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { ModelRegistry } from '../agent/index.ts';
import { defined } from '../contract/json.ts';
import { openAIBody } from './openai-body.ts';

/** Prefixes of model names that the environment's endpoint answers. */
const PREFIX = /^(openai-compatible|openai|env):/;

/**
 * The models of an OpenAI-compatible endpoint that the environment names, or `undefined`: `OPENAI_BASE_URL`
 * (Ollama, vLLM, any gateway) and `OPENAI_API_KEY`. It answers names like `openai:gpt-5` or `env:llama3.3`, and
 * reads an agent's `providerOptions.openai`. OpenAI's reasoning models take no `temperature`: it is left out.
 */
export function modelsFromEnvironment(env: NodeJS.ProcessEnv = process.env): ModelRegistry | undefined {
  // Compose and similar tools pass unset variables as empty texts.
  const apiKey = env['OPENAI_API_KEY'] || undefined;
  const baseURL = env['OPENAI_BASE_URL'] || (apiKey === undefined ? undefined : 'https://api.openai.com/v1');
  if (baseURL === undefined) return undefined;
  // A suffix alone would also match other people's hosts.
  const atOpenAI = URL.canParse(baseURL) && /^([a-z]+\.)?api\.openai\.com$/.test(new URL(baseURL).hostname);
  const provider = createOpenAICompatible({
    name: 'openai',
    baseURL,
    includeUsage: true,
    transformRequestBody: (body) => openAIBody(body, atOpenAI),
    ...defined({ apiKey }),
  });
  return { languageModel: (id) => provider.languageModel(id.replace(PREFIX, '')) };
}
