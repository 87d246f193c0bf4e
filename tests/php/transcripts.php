<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

// Plays the transcripts of tests/protocol with the package in the folder $PACKAGE.
// Ends with "N passed, N failed".

$root = dirname(__DIR__, 2);
require (getenv('PACKAGE') ?: "$root/api/clients/php") . '/autoload.php';
require '/usr/share/php/Psr/Log/autoload.php';
require __DIR__ . '/Warnings.php';
require __DIR__ . '/Player.php';

/**
 * asks: the request of the file, to this replica.
 *
 * @param array<string, mixed> $content
 * @param array<string, mixed> $step
 * @return array<string, mixed>
 */
function whole(array $content, array $step): array
{
    if (!isset($step['asks'])) {
        return $step;
    }
    $server = $step['asks'];
    unset($step['asks']);
    return $step + ['server' => $server] + $content['request'];
}

// what needs tasks that run side by side
const SKIPPED = ['together.json', 'busy.json'];

$passed = $failed = 0;
foreach (glob("$root/tests/protocol/*.json") as $file) {
    if (in_array(basename($file), SKIPPED, true)) {
        continue;
    }
    $content = json_decode(file_get_contents($file), true, 512, JSON_THROW_ON_ERROR);
    foreach ($content['transcripts'] as $transcript) {
        $steps = [...($content[$transcript['begins'] ?? ''] ?? []), ...$transcript['steps']];
        $transcript['steps'] = array_map(fn (array $step): array => whole($content, $step), $steps);
        try {
            (new Player($transcript, $content['grant'] ?? []))->play();
            $passed++;
        } catch (Throwable $error) {
            $failed++;
            echo 'FAIL  ', basename($file), ": $transcript[name]: {$error->getMessage()}\n";
        }
    }
}
echo "$passed passed, $failed failed\n";
exit($failed === 0 && $passed > 50 ? 0 : 1);
