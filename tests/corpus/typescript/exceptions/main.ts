// Errors as classes with fields, as values, and as things that must be told apart.
abstract class ShopError extends Error {
  abstract readonly code: number;
}
class OutOfStock extends ShopError {
  readonly code = 10;
  constructor(readonly wanted: number) { super(`${wanted} wanted`); }
}
class Closed extends ShopError {
  readonly code = 20;
}

type Result<T, E> = { ok: true; value: T } | { ok: false; error: E };
function attempt<T>(action: () => T): Result<T, ShopError> {
  try {
    return { ok: true, value: action() };
  } catch (error) {
    if (error instanceof ShopError) return { ok: false, error };
    throw error;
  } finally {
    console.log("tried");
  }
}
const order = (count: number, open = true): number => {
  if (!open) throw new Closed("come back tomorrow");
  if (count > 3) throw new OutOfStock(count);
  return count;
};
for (const result of [attempt(() => order(2)), attempt(() => order(5)), attempt(() => order(1, false))]) {
  console.log(result.ok ? `sold ${result.value}` : `${result.error.code} ${result.error.constructor.name}: ${result.error.message}`);
}
try {
  attempt(() => JSON.parse("{broken"));
} catch (error: unknown) {
  console.log(error instanceof SyntaxError, error instanceof ShopError);
}
function assertNever(value: never): never {
  throw new Error(`not foreseen: ${JSON.stringify(value)}`);
}
try {
  assertNever({ shape: "blob" } as never);
} catch (error) {
  console.log((error as Error).message);
}
