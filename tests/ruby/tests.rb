# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# Stories of the Ruby package over a redlockd at REDLOCKD_URL. Each prints a line; the
# last one says how many passed and failed.

require "active_job"
require "logger"
require "stringio"
require "timeout"
require "redlockd"
require "redlockd/active_job"

CLIENT = Redlockd::Client.new
OTHER = Redlockd::Client.new
STORIES = {}

def story(name, &block)
  STORIES[name] = block
end

def is(actual, expected, what = "")
  raise "#{what} #{actual.inspect}, not #{expected.inspect}" unless actual == expected
end

def raises(kind)
  yield
rescue Exception => e # rubocop:disable Lint/RescueException
  is(e.class, kind, e.message)
  e
else
  raise "no #{kind}"
end

def until_free(resource, limit_s = 2)
  now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
  end_at = now.call + limit_s
  sleep 0.02 while OTHER.get(resource) && now.call < end_at
  is(OTHER.get(resource), nil)
end

story("a block returns what it returns, and releases") do
  token = 0
  is(CLIENT.lock("run") do |lock|
    token = lock.fencing_token
    held = raises(Redlockd::LockHeld) { OTHER.lock("run", wait: 0).acquire }
    is([held.fencing_token, OTHER.get("run").fencing_token], [token, token])
    lock.check
    7
  end, 7)
  is(OTHER.get("run"), nil)
  is(raises(KeyError) { CLIENT.lock("run") { {}.fetch(1) } }.key, 1)
  is(OTHER.get("run"), nil)
  is(CLIENT.lock("run") { |lock| lock.fencing_token > token }, true)
  is(CLIENT.lock("run") { break 3 }, 3)
  is(OTHER.get("run"), nil)
end

story("threads renew it") do
  locks = Array.new(20) { |i| CLIENT.lock("renewed#{i}", ttl: 1).tap(&:acquire) }
  sleep 2.5
  is(locks.map(&:owned?).uniq, [true])
  locks.each(&:release)
  is(locks.map(&:remaining).uniq, [0.0])
end

story("a forced release is noticed at the next renewal") do
  losses = Queue.new
  lock = CLIENT.lock("forced", ttl: 1, on_loss: ->(loss) { losses << loss })
  lock.acquire
  one = OTHER.locks("forced").first
  is(OTHER.force_release(one.id, one.fencing_token), true)
  is(OTHER.force_release(one.id, one.fencing_token), false)
  is(losses.pop.class, Redlockd::LockLost)
  is(raises(Redlockd::LockLost) { lock.check }.message.include?("the lock ended"), true)
  raises(Redlockd::LockLost) { lock.release }
  raises(RuntimeError) { lock.release }
  raises(ArgumentError) { OTHER.force_release("forced", "all") }
end

story("a loss interrupts a block that wants it") do
  began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  raises(Redlockd::LockLost) do
    CLIENT.lock("interrupt", ttl: 1, interrupt: true) do |lock|
      OTHER.force_release("interrupt", lock.fencing_token)
      sleep 10
    end
  end
  is(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began < 5, true)
end

story("several, permits, readers, a downgrade") do
  CLIENT.lock("b", "a", wait: 0) { is(OTHER.lock("a").try_acquire, false) }
  CLIENT.lock("pool", limit: 3, permits: 2) do |permits|
    is(permits.slots.size, 2)
    is(OTHER.lock("pool", limit: 3, permits: 2).try_acquire, false)
    OTHER.lock("pool", limit: 3, wait: 0) { |one| is(one.slots.size, 1) }
  end
  lock = CLIENT.lock("catalog")
  lock.acquire
  reader = OTHER.lock("catalog", shared: true)
  is(reader.try_acquire, false)
  lock.downgrade
  is(lock.shared?, true)
  is(reader.try_acquire, true)
  is(CLIENT.get("catalog").readers, 2)
  [lock, reader].each(&:release)
end

story("extend asks for another TTL; what is wrong is refused") do
  lock = CLIENT.lock("longer", ttl: 2)
  lock.acquire
  lock.extend(20)
  is(lock.remaining > 15, true)
  refused = raises(Redlockd::RequestRefused) { lock.extend(999_999) }
  is([refused.status, refused.code], [400, "invalid_request"])
  raises(RuntimeError) { lock.acquire }
  lock.release
  [[[], {}], [%w[a b], { limit: 2 }], [%w[a], { permits: 2 }],
   [%w[a], { limit: 1, shared: true }]].each do |names, options|
    raises(ArgumentError) { CLIENT.lock(*names, **options) }
  end
  ["ftp://a", "a:1", "http://", "http://a/?b"].each do |bad|
    raises(ArgumentError) { Redlockd::Client.new(bad) }
  end
end

story("Timeout around all of it leaves no lock") do
  40.times do |i|
    Timeout.timeout(0.0005 * i) { CLIENT.lock("timeout") { sleep 0.005 } }
  rescue Timeout::Error
    nil
  end
  until_free("timeout")
  OTHER.lock("timeout") do
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    raises(Timeout::Error) { Timeout.timeout(0.2) { CLIENT.lock("timeout", wait: 9).acquire } }
    is(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began < 2.5, true)
  end
  until_free("timeout")
end

story("a thread that is killed gives its lock back") do
  ready = Queue.new
  thread = Thread.new do
    CLIENT.lock("killed") do
      ready << 1
      sleep
    end
  end
  ready.pop
  thread.kill.join
  until_free("killed")
end

story("a forked child does not hold the lock, and has connections of its own") do
  CLIENT.lock("fork", ttl: 2) do |lock|
    child = fork do
      is_own = CLIENT.lock("fork child", ttl: 1) do |one|
        sleep 1.5
        one.owned?
      end
      exit!(is_own && !lock.owned? && CLIENT.get("fork") ? 0 : 1)
    end
    Process.wait(child)
    is($?.exitstatus, 0)
    lock.check
    is(OTHER.get("fork").fencing_token, lock.fencing_token)
  end
end

story("a lock that nobody refers to expires") do
  acquire = lambda do
    CLIENT.lock("forgotten", ttl: 1).acquire
    nil
  end
  Thread.new { acquire.call }.join
  20.times do
    GC.start
    sleep 0.1
  end
  until_free("forgotten", 3)
end

# So often no thread can be made.
module NoThreads
  class << self
    attr_accessor :left
  end
  self.left = 0

  def new(*)
    raise ThreadError, "can't alloc thread" if (NoThreads.left -= 1) >= 0

    super
  end
end
Thread.singleton_class.prepend(NoThreads)

story("work waits for a thread that cannot be made yet") do
  Redlockd::Timers.at(0) { nil } # has its thread
  workers = Redlockd::Workers.new
  done = Queue.new
  NoThreads.left = 2
  2.times { workers.add(-> { done << 1 }) }
  100.times { sleep 0.02 if done.size < 2 }
  is(done.size, 2)
end

story("a watch reports each holder") do
  watch = CLIENT.watch("watched")
  is(watch.next, nil)
  lock = OTHER.lock("watched", owner: "web-3")
  lock.acquire
  is(watch.next.owner, "web-3")
  lock.release
  is(watch.next, nil)
end

story("servers that are not there") do
  text = StringIO.new
  nobody = Redlockd::Client.new("http://127.0.0.1:1,http://127.0.0.1:2", timeout: 0.5, logger: Logger.new(text))
  raises(Redlockd::Unavailable) { nobody.lock("a", wait: 0).acquire }
  is(text.string.include?("not acquired yet"), true)
  raises(Redlockd::Unavailable) { nobody.get("a") }
end

story("threads share a client, and one of them holds the lock") do
  counter = most = 0
  mutex = Mutex.new
  Array.new(8) do
    Thread.new do
      5.times do
        CLIENT.lock("shared by threads", wait: 20) do
          mutex.synchronize { most = [most, counter += 1].max }
          sleep 0.002
          mutex.synchronize { counter -= 1 }
        end
      end
    end
  end.each(&:join)
  is(most, 1)
end

story("ActiveJob") do
  ActiveJob::Base.queue_adapter = :inline
  ActiveJob::Base.logger = Logger.new(text = StringIO.new)
  performed = []
  kinds = %i[raise discard].map do |held|
    Class.new(ActiveJob::Base) do
      include Redlockd::ActiveJob
      perform_under_lock(ttl: 10, wait: 0, held: held) { |shop| "import:#{shop}" }
      define_singleton_method(:name) { "Import#{held}" }
      define_method(:perform) do |shop|
        lock.check
        performed << [shop, OTHER.get("import:#{shop}").fencing_token == lock.fencing_token]
      end
    end
  end
  kinds.each { |kind| kind.perform_now(3) }
  is(performed, [[3, true], [3, true]])
  is(OTHER.get("import:3"), nil)
  OTHER.lock("import:4") do
    raises(Redlockd::LockHeld) { kinds[0].perform_now(4) }
    kinds[1].perform_now(4)
  end
  is(performed.size, 2)
  is(text.string.include?("is discarded"), true)
end

story("a loss is raised within the block, or not at all") do
  late = nil
  begin
    CLIENT.lock("late raise", ttl: 1, interrupt: true) do |lock|
      one = Thread.current
      one.define_singleton_method(:raise) do |*of|
        sleep 0.5 # the other thread has to wait for the processor
        super(*of)
      end
      OTHER.force_release("late raise", lock.fencing_token)
      sleep 0.02 while lock.owned?
    end
  rescue Redlockd::LockLost
    begin
      sleep 1
    rescue Redlockd::LockLost => e
      late = e
    end
  ensure
    Thread.current.singleton_class.remove_method(:raise)
  end
  is(late, nil)
end

story("a timer that fails does not end the others") do
  is_called = false
  was, $stderr = $stderr, StringIO.new
  Redlockd::Timers.at(0) { raise ThreadError, "can't create Thread" }
  Redlockd::Timers.at(Redlockd::Clock.now_ms + 50) { is_called = true }
  sleep 0.3
  text = $stderr.string
  $stderr = was
  is([is_called, text.include?("can't create Thread")], [true, true])
end

story("a job that is interrupted right after its acquire releases the lock") do
  interrupts = Module.new do
    def acquire
      super
      Thread.current.raise(Timeout::Error)
    end
  end
  client = Redlockd::Client.new
  client.define_singleton_method(:lock) { |*names, **of| super(*names, **of).tap { |one| one.singleton_class.prepend(interrupts) } }
  job = Class.new(ActiveJob::Base) do
    include Redlockd::ActiveJob
    perform_under_lock(client: client, ttl: 10, wait: 0) { "interrupted job" }
    define_singleton_method(:name) { "Interrupted" }
    define_method(:perform) { sleep 1 }
  end
  raises(Timeout::Error) { job.perform_now }
  until_free("interrupted job")
end

counts = Hash.new(0)
STORIES.each do |name, block|
  block.call
  counts[:passed] += 1
  puts "ok    #{name}"
rescue Exception => e # rubocop:disable Lint/RescueException
  counts[:failed] += 1
  puts "FAIL  #{name}: #{e.class} #{e.message} #{e.backtrace.first(4).join(' ')}"
end
puts "#{counts[:passed]} passed, #{counts[:failed]} failed"
exit(counts[:failed].zero? ? 0 : 1)
