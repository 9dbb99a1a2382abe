/** How chat completions of OpenAI's reasoning models differ from those of other models. */

/** Whether a model is a reasoning model: o1, o3-mini, gpt-5, gpt-5.1-codex, also with a gateway's prefix or suffix. */
export function isReasoningModel(name: string): boolean {
  return name.split(/[/:]/).some((part) => {
    if (/^o\d+(-|$)/.test(part)) return true;
    const { major, minor, variant } =
      /^gpt-(?<major>\d+)(\.(?<minor>\d+))?(-(?<variant>.+))?$/.exec(part)?.groups ?? {};
    // gpt-5-chat-latest does not reason, gpt-5.1-chat-latest does.
    const chats = minor === undefined && variant?.startsWith('chat') === true;
    return Number(major) >= 5 && !chats;
  });
}

/** Options that reasoning models refuse. */
const REFUSED: readonly string[] = ['frequency_penalty', 'presence_penalty', 'logit_bias', 'top_logprobs'];
/** Options that they refuse unless reasoning is off. */
const REFUSED_WHILE_REASONING: readonly string[] = ['temperature', 'top_p', 'logprobs'];

/** A request body that the model accepts: the token cap under its new name, and without refused options. */
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
