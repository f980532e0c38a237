// Floating point as IEEE 754 has it, and whole numbers without end beside it.
console.log(0.1 + 0.2, 1e16 + 1, Number.MIN_VALUE, Number.MAX_VALUE, 1e21, 123456789012345680000);
console.log([0.1, 0.2, 0.3, 0.4].reduce((sum, value) => sum + value), Array(10).fill(0.1).reduce((a, b) => a + b));
console.log((2.5).toFixed(0), (1.005).toFixed(2), (0.000001234).toString(), (255).toString(16), (0.1).toString(2).length);
console.log(Math.round(-1.5), Math.round(2.5), Math.trunc(-1.9), Math.floor(-1.5), -7 % 3);
console.log(NaN === NaN, Object.is(NaN, NaN), Object.is(0, -0), 1 / -0, Math.max(1, NaN), [NaN].includes(NaN));
console.log((1234567.891).toLocaleString("en-US"), (1234567.891).toLocaleString("de-DE"), (1234.5).toExponential(2));
console.log(Number("0x10"), Number(""), Number("1e1000"), parseInt("12px"), parseFloat(".5e1"), Number("12px"));
console.log(Number.MAX_SAFE_INTEGER + 2, 2n ** 100n, (-7n) / 2n, BigInt.asIntN(8, 200n));
console.log(Math.hypot(3, 4), Math.fround(0.1), Math.clz32(1), 1 << 31, -1 >>> 28);
let harmonic = 0;
for (let n = 1; n <= 1000000; n++) harmonic += 1 / n;
console.log(harmonic, new Float32Array([16777217])[0], Math.sqrt(-1));
