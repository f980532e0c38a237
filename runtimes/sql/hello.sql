SELECT 'Hello, ' || 'World!';
