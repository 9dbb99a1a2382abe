/** What OpenAI's reasoning models take differently in a chat completion from all the models before them. */

/** Whether a name is that of such a model: o1, o3-mini, gpt-5, gpt-5.1-codex, also as a gateway writes it (`openai/gpt-5:online`). */
export function isReasoningModel(name: string): boolean {
  return name.split(/[/:]/).some((part) => {
    if (/^o\d+(-|$)/.test(part)) return true;
    const { major, minor, variant } =
      /^gpt-(?<major>\d+)(\.(?<minor>\d+))?(-(?<variant>.+))?$/.exec(part)?.groups ?? {};
    // gpt-5-chat-latest is of the old kind, gpt-5.1-chat-latest is not.
    const chats = minor === undefined && variant?.startsWith('chat') === true;
    return Number(major) >= 5 && !chats;
  });
}

/** The options of a body that such a model refuses, whatever their value. */
const REFUSED: readonly string[] = ['frequency_penalty', 'presence_penalty', 'logit_bias', 'top_logprobs'];
/** And those that it takes only when it is told not to reason. */
const REFUSED_WHILE_REASONING: readonly string[] = ['temperature', 'top_p', 'logprobs'];

/**
 * The body of a request as the model that it names takes it: the cap on tokens under its new name, which OpenAI
 * itself takes for all its models, and without what the model would refuse.
 */
export function openAIBody(body: Record<string, unknown>, atOpenAI: boolean): Record<string, unknown> {
  const reasons = isReasoningModel(String(body['model']));
  if (!reasons && !atOpenAI) return body;
  const { max_tokens: cap, ...rest } = body;
  const dropped = !reasons
    ? []
    : body['reasoning_effort'] === 'none'
      ? REFUSED
      : [...REFUSED, ...REFUSED_WHILE_REASONING];
  const kept = Object.fromEntries(Object.entries(rest).filter(([option]) => !dropped.includes(option)));
  return cap === undefined ? kept : { max_completion_tokens: cap, ...kept };
}
