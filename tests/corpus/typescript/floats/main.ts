// Statistics with floats, money without them.
type Cents = bigint & { readonly unit: "cents" };
const cents = (text: string): Cents => {
  const [whole = "0", part = ""] = text.split(".");
  return (BigInt(whole) * 100n + BigInt(part.padEnd(2, "0"))) as Cents;
};
const show = (amount: bigint): string => `${amount / 100n}.${String(amount % 100n).padStart(2, "0")}`;

const prices = ["0.10", "0.20", "19.99", "1000000000000000.01"];
console.log(prices.map(Number).reduce((sum, price) => sum + price, 0));
console.log(show(prices.map(cents).reduce<bigint>((sum, price) => sum + price, 0n)));

const samples: readonly number[] = [2, 4, 4, 4, 5, 5, 7, 9];
const mean = samples.reduce((sum, value) => sum + value, 0) / samples.length;
const deviation = Math.sqrt(samples.reduce((sum, value) => sum + (value - mean) ** 2, 0) / samples.length);
console.log(mean, deviation);

function kahan(values: Iterable<number>): number {
  let sum = 0, lost = 0;
  for (const value of values) {
    const corrected = value - lost;
    const next = sum + corrected;
    lost = next - sum - corrected;
    sum = next;
  }
  return sum;
}
const tenths: number[] = Array.from({ length: 1000 }, () => 0.1);
console.log(tenths.reduce((a, b) => a + b), kahan(tenths));
const bits = new DataView(new ArrayBuffer(8));
bits.setFloat64(0, 1 / 3);
console.log(bits.getBigUint64(0).toString(16), Number.EPSILON === 2 ** -52, (25).toString(36), 0.1 * 3);
console.log([1.5, -0, NaN, Infinity].map((value) => JSON.stringify(value)).join(" "), Number.isInteger(5.0), ~~-3.7);
console.log((1e-7).toFixed(10), (123.456).toPrecision(4), Math.sign(-0), Math.cbrt(27), Math.expm1(1e-10));
