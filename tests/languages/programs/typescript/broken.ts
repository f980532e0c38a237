const numbers: number[] = [1, 2, 3];

const text: string = numbers;
console.log(text);
