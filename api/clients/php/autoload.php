<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

// For programs without Composer: require this file.
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Redlockd\\')) {
        $file = __DIR__ . '/src/' . str_replace('\\', '/', substr($class, 9)) . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
