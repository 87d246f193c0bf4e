<?php
// SPDX-License-Identifier: MIT
// The job of README.md with the client for PHP: CLIENT=FOLDER job.php URL DEFAULT_TTL_MS NAME
require '/usr/share/php/GuzzleHttp/autoload.php';
[, $url, $ttl, $name] = $argv;
$client = getenv('CLIENT');
spl_autoload_register(function (string $class) use ($client): void {
    $file = "$client/lib" . strtr(substr($class, strlen('OpenAPI\\Client')), '\\', '/') . '.php';
    if (str_starts_with($class, 'OpenAPI\\Client\\') && is_file($file)) {
        require $file;
    }
});

use OpenAPI\Client\{ApiException, Configuration};
use OpenAPI\Client\Api\LocksApi;
use OpenAPI\Client\Model\{AcquireRequest, BatchOperation, BatchRequest, Grant, LockMode, OperationKind, Problem};

set_error_handler(function (int $kind, string $text, string $file, int $line): bool {
    if ($kind !== E_DEPRECATED) {
        throw new ErrorException($text, 0, $kind, $file, $line);
    }
    return true;
});
$locks = new LocksApi(null, (new Configuration())->setHost($url));
const MADE_UP = '1795221641865000.8f1c27a58f1c27a58f1c27a58f1c27a58f1c27a5';

function expect(bool $holds, mixed $what): void
{
    if (!$holds) {
        throw new Exception(print_r($what, true));
    }
}

function refused(int $status, string $code, callable $call): Problem
{
    try {
        $answer = $call();
    } catch (ApiException $e) {
        $problem = $e->getResponseObject();
        expect($problem instanceof Problem, $e->getMessage());
        expect($e->getCode() === $status && $problem->getStatus() === $status, $problem);
        expect($problem->getCode() === $code, $problem);
        return $problem;
    }
    throw new Exception('was not refused: ' . print_r($answer, true));
}

function acquire(string $resource, array $more = []): Grant
{
    global $locks;
    return $locks->acquireLock(new AcquireRequest(['resource' => $resource] + $more));
}

function extend(Grant $grant): Grant
{
    global $locks;
    return $locks->extendLock($grant->getId(), $grant->getToken());
}

function release(Grant $grant): void
{
    global $locks;
    expect($locks->releaseLock($grant->getId(), $grant->getToken())->getReleased(), $grant);
}

$resource = "Straße/$name";
$first = acquire($resource);
expect($first->getResource() === $resource && $first->getTtlMs() === (int) $ttl, $first);
$held = refused(409, 'lock_held', fn () => acquire($resource));
expect($held->getHeldBy()->getFencingToken() === $first->getFencingToken(), $held);
expect($locks->getLock($first->getId())->getFencingToken() === $first->getFencingToken(), $first);
$longer = extend($first);
expect($longer->getToken() === $first->getToken() && $longer->getTtlMs() === (int) $ttl, $longer);
$wrong = refused(400, 'invalid_request', fn () => acquire($resource, ['ttl_ms' => 20001]));
expect($wrong->getErrors()[0]->getPointer() === '/ttl_ms', $wrong);

$permits = acquire("pool $name", ['limit' => 3, 'permits' => 2, 'ttl_ms' => 20000]);
expect(count($permits->getSlots()) === 2 && $permits->getTtlMs() === 20000, $permits);
release($permits);

$one = acquire("report $name", ['mode' => LockMode::SHARED]);
$other = acquire("report $name", ['mode' => LockMode::SHARED]);
expect($one->getMode() === 'shared' && $one->getToken() !== $other->getToken(), $one);
release($one);
release($other);

$forced = acquire("forced $name");
$gone = $locks->releaseLock($forced->getId(), null, (string) $forced->getFencingToken());
expect($gone->getReleased() && $gone->getNodes()->getReleased() >= 3, $gone);
refused(404, 'lock_not_found', fn () => extend($forced));

$operations = [
    ['operation' => OperationKind::EXTEND, 'id' => $first->getId(), 'token' => $first->getToken()],
    ['operation' => OperationKind::RELEASE, 'id' => 'nobody', 'token' => MADE_UP],
    ['operation' => OperationKind::ACQUIRE, 'resource' => "batch $name"],
];
$items = $locks->runBatch(new BatchRequest([
    'operations' => array_map(fn ($one) => new BatchOperation($one), $operations)]))->getResults();
expect($items[0]->getStatus() === 200 && $items[0]->getGrant()->getToken() === $first->getToken(), $items);
expect($items[1]->getStatus() === 404 && $items[1]->getProblem()->getCode() === 'lock_not_found', $items);
expect($items[2]->getStatus() === 201, $items);
release($items[2]->getGrant());

release($first);
refused(404, 'lock_not_found', fn () => extend($first));
