export const capitalise = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

export function shout(parts: TemplateStringsArray, ...values: string[]): string {
  return String.raw({ raw: parts }, ...values.map((value) => value.toUpperCase()));
}
