/** Cuts a failing story down to a smaller one that still fails the same way. */
import type { Story } from './story.ts';

/** Smaller stories, the boldest cut first. */
function smaller(story: Story): Story[] {
  const { kinds, turns, strike, messages } = story;
  const cuts: Story[] = kinds.length > 1 ? kinds.map((kind) => ({ ...story, kinds: [kind] })) : [];
  if (kinds.length > 2)
    cuts.push(...kinds.map((kind) => ({ ...story, kinds: kinds.filter((each) => each !== kind) })));
  if (turns > 1) cuts.push({ ...story, turns: 1, strike: 1 });
  if (strike > 1) cuts.push({ ...story, strike: strike - 1 });
  if (messages) cuts.push({ ...story, messages: false });
  return cuts;
}

/**
 * The smallest story found by cutting one thing at a time as long as it breaks what the first did, or some of it.
 * `tell` tells one and returns what it broke; `budget` is how many may be told for it: each takes seconds. `null`
 * when it does not break that again as it is.
 */
export async function shrink(
  { story, broke }: { story: Story; broke: readonly string[] },
  tell: (story: Story) => Promise<readonly string[]>,
  budget = 12,
): Promise<Story | null> {
  const fails = async (each: Story): Promise<boolean> =>
    (await tell(each)).some((failure) => broke.includes(failure));
  // What does not fail as it is would only be cut at random.
  if (!(await fails(story))) return null;
  let smallest = story;
  let left = budget - 1;
  for (let cut = true; cut && left > 0; ) {
    cut = false;
    for (const candidate of smaller(smallest)) {
      if (left === 0) break;
      left -= 1;
      if (!(await fails(candidate))) continue;
      smallest = candidate;
      cut = true;
      break;
    }
  }
  return smallest;
}
