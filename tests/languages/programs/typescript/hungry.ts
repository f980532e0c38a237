const kept: number[][] = [];
for (;;) kept.push(new Array<number>(100000).fill(kept.length));
