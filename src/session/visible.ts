/**
 * Makes invisible characters visible, so that a text cannot look like another one: control characters except line break
 * and tab, and marks that have no width or change the direction of text. Joiners stay where words and emoji need them.
 */
export function visible(text: string): string {
  return text.replace(
    /[^\P{Cc}\n\t]|[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u200c\u200d](?=[!-~])/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}
