/** Cuts a failing story down to a smaller one that still fails the same way. */
import type { Story } from './story.ts';

/** Smaller stories, the largest cut first. */
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
 * Cuts one thing at a time while the story still breaks some of what the first one broke. Returns the smallest story,
 * or `null` if the first one breaks nothing when it runs again. `tell` runs a story and returns what it broke. `budget`
 * limits how many stories may run: each takes seconds.
 */
export async function shrink(
  { story, broke }: { story: Story; broke: readonly string[] },
  tell: (story: Story) => Promise<readonly string[]>,
  budget = 12,
): Promise<Story | null> {
  const fails = async (each: Story): Promise<boolean> =>
    (await tell(each)).some((failure) => broke.includes(failure));
  // Cutting a story that does not fail again would only give a random result.
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
